import { execFileSync } from 'node:child_process';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { shellWord } from '$lib/shell-words';
import { blocks, clients, tomlString, type Client, type Target } from './snippets';

const plain: Target = {
  url: 'http://127.0.0.1:8000',
  model: 'mlx-community/Qwen3-8B-4bit',
  needsKey: false,
  contextLength: 40_960,
  hasTools: true,
};
// Folders may have any name, and so may models.
const odd: Target = {
  url: 'http://[::1]:8123',
  model: `it's "a" $HOME \`id\` \\n 模型`,
  needsKey: true,
  contextLength: null,
  hasTools: false,
};
const targets = { plain, odd };

function code(client: Client, target: Target, language: string): string {
  const block = blocks(client, target).find((candidate) => candidate.language === language);
  if (!block) throw new Error(`${client} has nothing in ${language}`);
  return block.code;
}

/** What a shell hands to the program, one argument a line of JSON. */
function run(script: string, replaced: string): string[] {
  const probe = `${replaced}() { printf '%s\\0' "$@"; }\n`;
  const output = execFileSync('sh', ['-c', probe + script], { encoding: 'utf8' });
  return output.split('\0').slice(0, -1);
}

/** A command that prints its environment. */
const SHOW = `${shellWord(process.execPath)} -p 'JSON.stringify(process.env)'`;

function environmentOf(script: string): Record<string, string> {
  const output = execFileSync('sh', ['-c', script], { encoding: 'utf8', env: {} });
  return JSON.parse(output) as Record<string, string>;
}

describe.each(Object.entries(targets))('for the %s model', (_, target) => {
  const key = target.needsKey ? 'YOUR_KEY' : 'local';

  it('Claude Code gets its variables from the shell as they are', () => {
    const script = code('claude', target, 'sh').replace(/claude$/, SHOW);
    expect(environmentOf(script)).toMatchObject({
      ANTHROPIC_BASE_URL: target.url,
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: target.model,
      ANTHROPIC_DEFAULT_OPUS_MODEL: target.model,
      ANTHROPIC_DEFAULT_SONNET_MODEL: target.model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: target.model,
    });
  });

  it('Codex gets strings that read back, its two keys before the table', () => {
    const lines = code('codex', target, 'toml').split('\n');
    const table = lines.indexOf('[model_providers.macmlx]');
    const value = (name: string) => {
      const index = lines.findIndex((line) => line.startsWith(`${name} = `));
      return { index, text: JSON.parse(lines[index]?.slice(name.length + 3) ?? '') as unknown };
    };
    expect(value('model').text).toBe(target.model);
    expect(value('model').index).toBeLessThan(table);
    expect(value('model_provider')).toEqual({ index: 1, text: 'macmlx' });
    expect(value('base_url').text).toBe(`${target.url}/v1`);
    expect(value('base_url').index).toBeGreaterThan(table);
    expect(value('wire_api').text).toBe('responses');
    expect(lines.some((line) => line.startsWith('env_key'))).toBe(target.needsKey);
    expect(code('codex', target, 'sh').includes('YOUR_KEY')).toBe(target.needsKey);
  });

  it('opencode gets JSON whose model is the one of its provider', () => {
    const configuration = JSON.parse(code('opencode', target, 'json')) as {
      provider: Record<
        string,
        { options: unknown; models: Record<string, { limit: { context: number; output: number } }> }
      >;
      model: string;
    };
    const [provider, ...model] = configuration.model.split('/');
    const entry = configuration.provider[provider ?? ''];
    expect(entry?.options).toEqual({ baseURL: `${target.url}/v1`, apiKey: key });
    const limit = entry?.models[model.join('/')]?.limit;
    expect(limit?.context).toBe(target.contextLength ?? 32_768);
    expect(limit?.output).toBeLessThan(limit?.context ?? 0);
  });

  it('curl gets one body that is JSON, and a key only where one is asked for', () => {
    const args = run(code('curl', target, 'sh'), 'curl');
    expect(args[0]).toBe(`${target.url}/v1/chat/completions`);
    expect(args.includes('authorization: Bearer YOUR_KEY')).toBe(target.needsKey);
    expect(args.at(-2)).toBe('-d');
    expect(JSON.parse(args.at(-1) ?? '')).toEqual({
      model: target.model,
      messages: [{ role: 'user', content: 'Hello!' }],
    });
  });

  it.each(['openai', 'anthropic'] as const)('the JavaScript of %s compiles', (client) => {
    const source = code(client, target, 'javascript');
    const { diagnostics } = ts.transpileModule(source, {
      reportDiagnostics: true,
      compilerOptions: { target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext },
    });
    expect(diagnostics).toEqual([]);
    expect(source).toContain(`model: ${JSON.stringify(target.model)}`);
  });

  it('the SDK of Anthropic gets an address without /v1, that of OpenAI one with it', () => {
    expect(code('anthropic', target, 'python')).toContain(`base_url=${JSON.stringify(target.url)}`);
    expect(code('openai', target, 'python')).toContain(
      `base_url=${JSON.stringify(`${target.url}/v1`)}`,
    );
  });

  it("Ollama's clients get their variables", () => {
    const script = `${code('ollama', target, 'sh')}\n${SHOW}`;
    const variables = environmentOf(script);
    expect(variables.OLLAMA_HOST).toBe(target.url);
    expect(variables.OLLAMA_API_KEY).toBe(target.needsKey ? 'YOUR_KEY' : undefined);
  });
});

it('has nothing to paste for Cursor only', () => {
  const silent = clients.filter((client) => blocks(client, plain).length === 0);
  expect(silent).toEqual(['cursor']);
});

it('escapes what TOML does not take in a basic string', () => {
  expect(tomlString('a"b\\c\u0001\u007f')).toBe('"a\\"b\\\\c\\u0001\\u007F"');
});
