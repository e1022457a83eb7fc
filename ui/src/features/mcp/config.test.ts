import { describe, expect, it } from 'vitest';
import {
  bodyOf,
  draftErrors,
  emptyDraft,
  hasErrors,
  parsePaste,
  suggestedName,
  type Draft,
} from './config';

const time = { command: 'uvx', args: ['mcp-server-time'] };
const timeDraft: Draft = { ...emptyDraft(), name: 'time', ...time };

describe('a paste', () => {
  it.each([
    ['the file of Claude Desktop', { mcpServers: { time } }],
    ['that of VS Code', { servers: { time: { type: 'stdio', ...time } } }],
    ['that of Zed', { theme: 'dark', context_servers: { time } }],
    ['a map of servers', { time }],
    ['a lone server', time],
  ])('may be %s', (_, document) => {
    expect(parsePaste(JSON.stringify(document, null, 2))).toEqual({
      servers: [timeDraft],
      problems: [],
    });
  });

  it('may be a fragment with its comma', () => {
    const text = `"time": ${JSON.stringify(time)},\n`;
    expect(parsePaste(text)?.servers).toEqual([timeDraft]);
  });

  it('is split into its servers, with variables and marks', () => {
    const paste = parsePaste(
      JSON.stringify({
        mcpServers: {
          files: { command: 'npx', args: ['-y', 'files', '/My Files'], env: { TOKEN: 's', N: 3 } },
          off: { command: 'x', disabled: true },
          remote: { url: 'https://example.com/mcp' },
          broken: { args: [] },
          wrong: { command: 'x', args: 'y' },
          odd: { command: 'x', env: { A: {} } },
          list: [],
        },
      }),
    );
    expect(paste?.servers).toEqual([
      {
        name: 'files',
        command: 'npx',
        args: ['-y', 'files', '/My Files'],
        env: [
          { name: 'TOKEN', value: 's' },
          { name: 'N', value: '3' },
        ],
        isEnabled: true,
      },
      { name: 'off', command: 'x', args: [], env: [], isEnabled: false },
    ]);
    expect(paste?.problems).toEqual([
      { name: 'remote', problem: 'url' },
      { name: 'broken', problem: 'command' },
      { name: 'wrong', problem: 'args' },
      { name: 'odd', problem: 'env' },
      { name: 'list', problem: 'shape' },
    ]);
  });

  it('may hold a server called servers', () => {
    expect(parsePaste(JSON.stringify({ servers: time }))?.servers[0]?.name).toBe('servers');
  });

  it.each(['', '{', 'npx -y x', '[]', '{}', '{"a": 1}', '"x"', '{"mcpServers": {}}'])(
    'cannot be %j',
    (text) => expect(parsePaste(text)).toBeNull(),
  );
});

it.each([
  ['npx', ['-y', '@modelcontextprotocol/server-filesystem@1.2.0', '/tmp'], 'filesystem'],
  ['uvx', ['mcp-server-time'], 'time'],
  ['/usr/bin/python3', ['-m', 'weather'], 'weather'],
  ['/opt/tools/github-mcp-server', [], 'github'],
  ['node', ['build/index.js'], 'index'],
  ['npx', [], 'npx'],
])('names %s %j as %s', (command, args, name) => {
  expect(suggestedName(command, args)).toBe(name);
});

describe('a draft', () => {
  it('is refused without name or command, and under a name that is taken', () => {
    expect(draftErrors(emptyDraft(), [])).toEqual({ name: 'empty', command: 'empty', env: {} });
    expect(draftErrors(timeDraft, ['time'])).toEqual({ name: 'taken', env: {} });
    expect(draftErrors({ ...timeDraft, name: 'a\nb' }, []).name).toBe('text');
    expect(hasErrors(draftErrors(timeDraft, ['files']))).toBe(false);
  });

  it('has variables with names of their own', () => {
    const env = [
      { name: 'A', value: '1' },
      { name: ' A ', value: '2' },
      { name: '', value: 'x' },
      { name: 'B=C', value: '' },
      { name: '', value: '' },
    ];
    const errors = draftErrors({ ...timeDraft, env }, []);
    expect(errors.env).toEqual({ 1: 'twice', 2: 'empty', 3: 'invalid' });
    expect(hasErrors(errors)).toBe(true);
  });

  it('is sent without empty rows, and keeps stored values', () => {
    const env = [
      { name: ' TOKEN ', value: null },
      { name: '', value: '' },
      { name: 'B', value: '' },
    ];
    expect(bodyOf({ ...timeDraft, command: ' uvx ', env })).toEqual({
      command: 'uvx',
      args: ['mcp-server-time'],
      env: { TOKEN: null, B: '' },
      is_enabled: true,
    });
  });
});
