/** What the thread shows for one message, whether it is stored or still being written. */
import type { Message } from '$lib/api';

/** Where a tool call stands: being written, waiting for leave or its turn, running, or over. */
export type CallState =
  'writing' | 'waiting' | 'approval' | 'running' | 'done' | 'failed' | 'denied' | 'cancelled';

export interface Call {
  id: string;
  name: string;
  server: string | null;
  /** JSON text, perhaps not yet whole. */
  arguments: string;
  state: CallState;
  result: string | null;
  durationMs: number | null;
}

export interface Entry {
  id: string;
  role: Message['role'];
  content: string;
  reasoning: string;
  reasoningSeconds: number | null;
  calls: Call[];
  usage: Message['usage'] | null;
  timings: Message['timings'] | null;
  /** Null while it is being written. */
  finishReason: Message['finishReason'] | null;
  error: string | null;
  model: string | null;
  imageCount: number;
}

/** The tool's own name: models know it with its server's name before it. */
export function ownName(name: string, server: string | null): string {
  const prefix = `${server ?? ''}__`;
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

/** An entry with nothing in it yet. */
export function emptyEntry(id: string, role: Message['role'], model: string | null = null): Entry {
  return {
    id,
    role,
    content: '',
    reasoning: '',
    reasoningSeconds: null,
    calls: [],
    usage: null,
    timings: null,
    finishReason: null,
    error: null,
    model,
    imageCount: 0,
  };
}

const known = new WeakMap<Message, Entry>();

/** The entry of a stored message; the same object each time, so that nothing is drawn twice. */
export function entryOf(message: Message): Entry {
  const kept = known.get(message);
  if (kept) return kept;
  const entry: Entry = {
    ...emptyEntry(message.id, message.role, message.model ?? null),
    content: message.content,
    reasoning: message.reasoning ?? '',
    reasoningSeconds: message.reasoningSeconds ?? null,
    calls: (message.toolCalls ?? []).map((call) => ({
      id: call.id,
      name: ownName(call.name, call.server ?? null),
      server: call.server ?? null,
      arguments: call.arguments,
      state: call.state,
      result: call.result ?? null,
      durationMs: call.durationMs ?? null,
    })),
    usage: message.usage,
    timings: message.timings,
    // Messages of older versions do not say how they ended: they ended well.
    finishReason: message.finishReason ?? 'stop',
    error: message.error ?? null,
    imageCount: message.images?.length ?? 0,
  };
  known.set(message, entry);
  return entry;
}

/** Messages of one turn: what a person said, or all that was answered to it. */
export interface Turn {
  key: string;
  role: Message['role'];
  entries: Entry[];
}

/** Joins neighbouring answers, which are the rounds of one tool loop, into turns. */
export function turnsOf(entries: Entry[]): Turn[] {
  const turns: Turn[] = [];
  for (const entry of entries) {
    const last = turns.at(-1);
    if (last && last.role === 'assistant' && entry.role === 'assistant') last.entries.push(entry);
    else turns.push({ key: entry.id, role: entry.role, entries: [entry] });
  }
  return turns;
}

/**
 * Stored messages with the ones of a running answer put over them: while it runs its own version of
 * a message is newer, afterwards the stored one is.
 */
export function merge(stored: Message[], live: Entry[], isRunning: boolean): Entry[] {
  const ours = new Map(live.map((entry) => [entry.id, entry]));
  const merged = stored.map((message) => {
    const own = ours.get(message.id);
    ours.delete(message.id);
    return isRunning && own ? own : entryOf(message);
  });
  return [...merged, ...ours.values()];
}
