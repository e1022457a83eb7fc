/** What to paste to point a client at the server: pure functions of its address, a model and a key. */

import { shellWord } from '$lib/shell-words';

export const clients = [
  'claude',
  'codex',
  'opencode',
  'openai',
  'anthropic',
  'curl',
  'ollama',
  'cursor',
] as const;
export type Client = (typeof clients)[number];

/** What the snippets point at. */
export interface Target {
  /** Base URL without a path. */
  url: string;
  model: string;
  needsKey: boolean;
  /** Tokens the model can hold; null when it does not say. */
  contextLength: number | null;
  hasTools: boolean;
}

/** A piece of text to paste, and where. */
export interface Block {
  language: 'sh' | 'toml' | 'json' | 'python' | 'javascript';
  /** The file it belongs in. */
  file?: string;
  code: string;
}

/** Stands for a key, which is shown only when it is made. */
export const KEY_PLACEHOLDER = 'YOUR_KEY';
/** For clients that send a key whether the server wants one or not. */
const ANY_KEY = 'local';
const DEFAULT_CONTEXT = 32_768;
const MOST_OUTPUT = 8192;

const keyOf = (target: Target) => (target.needsKey ? KEY_PLACEHOLDER : ANY_KEY);

/** A basic string of TOML, whose escapes are those of JSON and one more. */
export function tomlString(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', '\\u007F');
}

/** A string literal of Python and of JavaScript. */
const literal = (text: string) => JSON.stringify(text);

const environment = (variables: [string, string][]) =>
  variables.map(([name, value]) => `${name}=${shellWord(value)}`);

function claude(target: Target): Block[] {
  const variables = environment([
    ['ANTHROPIC_BASE_URL', target.url],
    ['ANTHROPIC_AUTH_TOKEN', keyOf(target)],
    ['ANTHROPIC_MODEL', target.model],
    ['ANTHROPIC_DEFAULT_OPUS_MODEL', target.model],
    ['ANTHROPIC_DEFAULT_SONNET_MODEL', target.model],
    ['ANTHROPIC_DEFAULT_HAIKU_MODEL', target.model],
    ['CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC', '1'],
    ['CLAUDE_CODE_ATTRIBUTION_HEADER', '0'],
  ]);
  return [{ language: 'sh', code: [...variables, 'claude'].join(' \\\n  ') }];
}

function codex(target: Target): Block[] {
  const lines = [
    `model = ${tomlString(target.model)}`,
    'model_provider = "macmlx"',
    '',
    '[model_providers.macmlx]',
    'name = "macMLX"',
    `base_url = ${tomlString(`${target.url}/v1`)}`,
    'wire_api = "responses"',
  ];
  if (target.needsKey) lines.push('env_key = "MACMLX_API_KEY"');
  const start = target.needsKey ? `MACMLX_API_KEY=${KEY_PLACEHOLDER} codex` : 'codex';
  return [
    { language: 'toml', file: '~/.codex/config.toml', code: lines.join('\n') },
    { language: 'sh', code: start },
  ];
}

function opencode(target: Target): Block[] {
  const context = target.contextLength ?? DEFAULT_CONTEXT;
  const configuration = {
    $schema: 'https://opencode.ai/config.json',
    provider: {
      macmlx: {
        npm: '@ai-sdk/openai-compatible',
        name: 'macMLX',
        options: { baseURL: `${target.url}/v1`, apiKey: keyOf(target) },
        models: {
          [target.model]: {
            tool_call: target.hasTools,
            limit: { context, output: Math.min(MOST_OUTPUT, Math.ceil(context / 4)) },
          },
        },
      },
    },
    model: `macmlx/${target.model}`,
  };
  return [
    {
      language: 'json',
      file: '~/.config/opencode/opencode.json',
      code: JSON.stringify(configuration, null, 2),
    },
  ];
}

function openai(target: Target): Block[] {
  const url = literal(`${target.url}/v1`);
  const key = literal(keyOf(target));
  const model = literal(target.model);
  return [
    {
      language: 'python',
      code: [
        'from openai import OpenAI',
        '',
        `client = OpenAI(base_url=${url}, api_key=${key})`,
        'reply = client.chat.completions.create(',
        `    model=${model},`,
        '    messages=[{"role": "user", "content": "Hello!"}],',
        ')',
        'print(reply.choices[0].message.content)',
      ].join('\n'),
    },
    {
      language: 'javascript',
      code: [
        'import OpenAI from "openai";',
        '',
        `const client = new OpenAI({ baseURL: ${url}, apiKey: ${key} });`,
        'const reply = await client.chat.completions.create({',
        `  model: ${model},`,
        '  messages: [{ role: "user", content: "Hello!" }],',
        '});',
        'console.log(reply.choices[0].message.content);',
      ].join('\n'),
    },
  ];
}

function anthropic(target: Target): Block[] {
  const url = literal(target.url);
  const key = literal(keyOf(target));
  const model = literal(target.model);
  return [
    {
      language: 'python',
      code: [
        'from anthropic import Anthropic',
        '',
        `client = Anthropic(base_url=${url}, api_key=${key})`,
        'reply = client.messages.create(',
        `    model=${model},`,
        '    max_tokens=1024,',
        '    messages=[{"role": "user", "content": "Hello!"}],',
        ')',
        'print(reply.content[-1].text)',
      ].join('\n'),
    },
    {
      language: 'javascript',
      code: [
        'import Anthropic from "@anthropic-ai/sdk";',
        '',
        `const client = new Anthropic({ baseURL: ${url}, apiKey: ${key} });`,
        'const reply = await client.messages.create({',
        `  model: ${model},`,
        '  max_tokens: 1024,',
        '  messages: [{ role: "user", content: "Hello!" }],',
        '});',
        'console.log(reply.content.at(-1).text);',
      ].join('\n'),
    },
  ];
}

function curl(target: Target): Block[] {
  const body = JSON.stringify({
    model: target.model,
    messages: [{ role: 'user', content: 'Hello!' }],
  });
  const parts = [
    `curl ${shellWord(`${target.url}/v1/chat/completions`)}`,
    "-H 'content-type: application/json'",
    ...(target.needsKey ? [`-H 'authorization: Bearer ${KEY_PLACEHOLDER}'`] : []),
    `-d ${shellWord(body)}`,
  ];
  return [{ language: 'sh', code: parts.join(' \\\n  ') }];
}

function ollama(target: Target): Block[] {
  const key = target.needsKey ? ` OLLAMA_API_KEY=${KEY_PLACEHOLDER}` : '';
  return [
    { language: 'sh', code: `export OLLAMA_HOST=${shellWord(target.url)}${key}` },
    {
      language: 'python',
      code: [
        'import ollama',
        '',
        'reply = ollama.chat(',
        `    model=${literal(target.model)},`,
        '    messages=[{"role": "user", "content": "Hello!"}],',
        ')',
        'print(reply.message.content)',
      ].join('\n'),
    },
  ];
}

const makers: Record<Client, (target: Target) => Block[]> = {
  claude,
  codex,
  opencode,
  openai,
  anthropic,
  curl,
  ollama,
  // Its requests leave from its own servers, which do not reach this computer.
  cursor: () => [],
};

/** What to paste for a client, in order; nothing for one that cannot reach the server. */
export function blocks(client: Client, target: Target): Block[] {
  return makers[client](target);
}
