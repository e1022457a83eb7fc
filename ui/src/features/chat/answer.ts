/** A running answer: chat events folded into the entries that the thread shows. */
import type { ChatEvent } from '$lib/api';
import { emptyEntry, entryOf, ownName, type Call, type Entry } from './entry';

/** What the model is busy with. */
export type Phase = 'waiting' | 'loading' | 'prefill' | 'reasoning' | 'text' | 'tools' | 'over';

export interface Answer {
  entries: Entry[];
  phase: Phase;
  /** Tokens of the prompt; null until they are known. */
  prefill: { processed: number; total: number; cached: number } | null;
  /** When the reasoning began, in milliseconds of any clock. */
  reasoningSince: number | null;
  /** The title that the server gave the conversation meanwhile. */
  title: string | null;
}

export const noAnswer: Answer = {
  entries: [],
  phase: 'waiting',
  prefill: null,
  reasoningSince: null,
  title: null,
};

/** The id of a message that the server has not stored yet. */
export const PENDING = 'pending';

/** An answer that was just asked for. */
export function asked(content: string | undefined): Answer {
  if (content === undefined) return noAnswer;
  return { ...noAnswer, entries: [{ ...emptyEntry(PENDING, 'user'), content }] };
}

function put(entries: Entry[], entry: Entry): Entry[] {
  const rest = entry.role === 'user' ? entries.filter(({ id }) => id !== PENDING) : entries;
  return rest.some(({ id }) => id === entry.id)
    ? rest.map((other) => (other.id === entry.id ? entry : other))
    : [...rest, entry];
}

/** Changes the message that is being written. */
function onLast(answer: Answer, change: (entry: Entry) => Partial<Entry>): Answer {
  const last = answer.entries.at(-1);
  if (!last || last.role !== 'assistant') return answer;
  return { ...answer, entries: [...answer.entries.slice(0, -1), { ...last, ...change(last) }] };
}

/** Changes one tool call, in whichever message it stands. */
function onCall(answer: Answer, id: string, change: (call: Call) => Partial<Call>): Answer {
  const entries = answer.entries.map((entry) =>
    entry.calls.some((call) => call.id === id)
      ? {
          ...entry,
          calls: entry.calls.map((call) => (call.id === id ? { ...call, ...change(call) } : call)),
        }
      : entry,
  );
  return { ...answer, entries };
}

function endReasoning(answer: Answer, now: number): Answer {
  const since = answer.reasoningSince;
  if (since === null) return answer;
  const ended = onLast(answer, () => ({ reasoningSeconds: (now - since) / 1000 }));
  return { ...ended, reasoningSince: null };
}

/** The answer after one more event; `now` in milliseconds dates the reasoning. */
export function reduce(answer: Answer, event: ChatEvent, now: number): Answer {
  switch (event.type) {
    case 'message': {
      const entry = entryOf(event.message);
      // After a round of tools the model reads their results.
      const phase = entry.finishReason === 'tool_calls' ? 'waiting' : answer.phase;
      return { ...answer, phase, prefill: null, entries: put(answer.entries, entry) };
    }
    case 'assistant_started':
      return {
        ...answer,
        entries: put(answer.entries, emptyEntry(event.id, 'assistant', event.model)),
        phase: 'waiting',
        prefill: null,
        reasoningSince: null,
      };
    case 'loading':
      return { ...answer, phase: 'loading' };
    case 'prefill': {
      const { processed, total, cached } = event;
      return { ...answer, phase: 'prefill', prefill: { processed, total, cached } };
    }
    case 'reasoning': {
      const since = answer.reasoningSince ?? now;
      const longer = onLast(answer, (entry) => ({
        reasoning: entry.reasoning + event.text,
        reasoningSeconds: (now - since) / 1000,
      }));
      return { ...longer, phase: 'reasoning', reasoningSince: since };
    }
    case 'text': {
      const ended = endReasoning(answer, now);
      const longer = onLast(ended, (entry) => ({ content: entry.content + event.text }));
      return { ...longer, phase: 'text' };
    }
    case 'tool_call': {
      const call: Call = {
        id: event.call.id,
        name: ownName(event.call.name, event.call.server),
        server: event.call.server,
        arguments: '',
        state: 'writing',
        result: null,
        durationMs: null,
      };
      const ended = endReasoning(answer, now);
      return { ...onLast(ended, (entry) => ({ calls: [...entry.calls, call] })), phase: 'tools' };
    }
    case 'tool_arguments':
      return onCall(answer, event.id, (call) => ({ arguments: call.arguments + event.text }));
    case 'tool_call_end':
      return onCall(answer, event.id, () => ({ state: 'waiting' }));
    case 'tool_approval':
      return onCall(answer, event.id, () => ({
        state: 'approval',
        arguments: event.arguments,
        server: event.server,
      }));
    case 'tool_started':
      return onCall(answer, event.id, () => ({ state: 'running' }));
    case 'tool_result':
      return onCall(answer, event.id, () => ({
        state: event.state,
        result: event.content,
        durationMs: event.duration_ms,
      }));
    case 'title':
      return { ...answer, title: event.title };
    case 'finished': {
      const reasons = ['stop', 'length', 'tool_calls', 'cancelled', 'error'] as const;
      const ended = onLast(endReasoning(answer, now), (entry) => ({
        finishReason: reasons.find((reason) => reason === event.reason) ?? 'stop',
        usage: event.usage,
        timings: event.timings,
        error: entry.error,
      }));
      return { ...ended, phase: 'over' };
    }
    case 'error':
      return interrupted(answer, 'error', event.message, now);
  }
}

/** The answer when it broke off: calls that were under way are over too. */
export function interrupted(
  answer: Answer,
  reason: 'cancelled' | 'error',
  error: string | null,
  now: number,
): Answer {
  const ended = endReasoning(answer, now);
  const last = ended.entries.at(-1);
  // Nothing was begun: there must be something to hang the reason on.
  const started =
    last?.role === 'assistant'
      ? ended
      : { ...ended, entries: [...ended.entries, emptyEntry(`${PENDING}-answer`, 'assistant')] };
  const isOver = (call: Call) => ['done', 'failed', 'denied', 'cancelled'].includes(call.state);
  return {
    ...onLast(started, (entry) => ({
      finishReason: reason,
      error,
      calls: entry.calls.map((call) => (isOver(call) ? call : { ...call, state: 'cancelled' })),
    })),
    phase: 'over',
  };
}
