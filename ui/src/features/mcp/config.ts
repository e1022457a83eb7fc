/** Definitions of MCP servers: what people paste from other clients, and what can be saved. */

/** A variable; a null value keeps the one that is stored, which is never shown. */
export interface Variable {
  name: string;
  value: string | null;
}

/** A server while it is written down. */
export interface Draft {
  name: string;
  command: string;
  args: string[];
  env: Variable[];
  isEnabled: boolean;
}

export type PasteProblem = 'url' | 'command' | 'args' | 'env' | 'shape';

/** What a pasted text holds. */
export interface Paste {
  servers: Draft[];
  /** Entries that cannot be taken, and what is wrong with each. */
  problems: { name: string; problem: PasteProblem }[];
}

export const emptyDraft = (): Draft => ({
  name: '',
  command: '',
  args: [],
  env: [],
  isEnabled: true,
});

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parses JSON, also a fragment `"name": {…}` and one with the comma that followed it. */
function lenient(text: string): unknown {
  const trimmed = text.trim().replace(/,$/, '');
  for (const candidate of [trimmed, `{${trimmed}}`]) {
    try {
      return JSON.parse(candidate);
    } catch {
      // The next form may fit.
    }
  }
  return undefined;
}

const isServer = (value: unknown) =>
  isObject(value) && (typeof value.command === 'string' || 'url' in value || 'serverUrl' in value);

/** The entries of a document by name; a lone server is named after its program. */
function entries(document: Json): [string, unknown][] | null {
  // Claude Desktop and most others; VS Code; Zed.
  for (const key of ['mcpServers', 'servers', 'context_servers']) {
    const inner = document[key];
    if (isObject(inner) && !isServer(inner)) return Object.entries(inner);
  }
  if (isServer(document)) return [['', document]];
  const all = Object.entries(document);
  return all.some(([, value]) => isServer(value)) ? all : null;
}

const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

function draftOf(name: string, value: unknown): Draft | PasteProblem {
  if (!isObject(value)) return 'shape';
  const { command, args = [], env = {} } = value;
  if (typeof command !== 'string' || !command.trim())
    return 'url' in value || 'serverUrl' in value ? 'url' : 'command';
  if (!isTextList(args)) return 'args';
  if (!isObject(env)) return 'env';
  const variables: Variable[] = [];
  for (const [variable, text] of Object.entries(env)) {
    // Numbers and switches are often written without quotes.
    if (!['string', 'number', 'boolean'].includes(typeof text)) return 'env';
    variables.push({ name: variable, value: String(text) });
  }
  return {
    name: name || suggestedName(command, args),
    command,
    args,
    env: variables,
    isEnabled: value.disabled !== true && value.enabled !== false,
  };
}

/** Reads what other clients' settings hold; null if the text is no such thing. */
export function parsePaste(text: string): Paste | null {
  const document = lenient(text);
  const found = isObject(document) ? entries(document) : null;
  if (!found || found.length === 0) return null;
  const paste: Paste = { servers: [], problems: [] };
  for (const [name, value] of found) {
    const draft = draftOf(name, value);
    if (typeof draft === 'string') paste.problems.push({ name, problem: draft });
    else paste.servers.push(draft);
  }
  return paste;
}

/** Programs that only start the one that matters. */
const RUNNERS = new Set([
  'npx',
  'bunx',
  'pnpx',
  'uvx',
  'uv',
  'node',
  'python',
  'python3',
  'docker',
]);

/** A name for a server from its command: `npx -y @scope/server-time` is `time`. */
export function suggestedName(command: string, args: readonly string[]): string {
  const last = (path: string) => path.split(/[/\\]/).pop() ?? path;
  const program = last(command);
  const subject = RUNNERS.has(program)
    ? (args.find((arg) => !arg.startsWith('-') && !['tool', 'run', 'dlx'].includes(arg)) ?? program)
    : program;
  return last(subject)
    .replace(/(?<=.)@.*$/, '')
    .replace(/\.(js|mjs|py|exe)$/, '')
    .replace(/^(mcp-server|server|mcp)[-_]|[-_](mcp-server|mcp|server)$/g, '');
}

export interface DraftErrors {
  name?: 'empty' | 'taken' | 'text';
  command?: 'empty';
  /** By the place in the list. */
  env: Record<number, 'empty' | 'invalid' | 'twice'>;
}

/** What keeps a draft from being saved. `taken` are the names of other servers. */
export function draftErrors(draft: Draft, taken: readonly string[]): DraftErrors {
  const errors: DraftErrors = { env: {} };
  const name = draft.name.trim();
  if (!name) errors.name = 'empty';
  else if (/\p{Cc}/u.test(name)) errors.name = 'text';
  else if (taken.includes(name)) errors.name = 'taken';
  if (!draft.command.trim()) errors.command = 'empty';
  draft.env.forEach((variable, index) => {
    const own = variable.name.trim();
    if (!own) {
      if (variable.value) errors.env[index] = 'empty';
    } else if (/[=\0]/.test(own)) errors.env[index] = 'invalid';
    else if (draft.env.findIndex((other) => other.name.trim() === own) < index)
      errors.env[index] = 'twice';
  });
  return errors;
}

export const hasErrors = (errors: DraftErrors) =>
  Boolean(errors.name ?? errors.command) || Object.keys(errors.env).length > 0;

/** The body that stores a draft; rows of variables without a name are dropped. */
export function bodyOf(draft: Draft) {
  const named = draft.env.filter((variable) => variable.name.trim());
  return {
    command: draft.command.trim(),
    args: draft.args,
    env: Object.fromEntries(named.map(({ name, value }) => [name.trim(), value])),
    is_enabled: draft.isEnabled,
  };
}
