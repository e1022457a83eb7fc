import { describe, expect, it } from 'vitest';
import type { ChatEvent, Message } from '$lib/api';
import { asked, interrupted, noAnswer, PENDING, reduce, type Answer } from './answer';
import { entryOf, merge, turnsOf } from './entry';

const usage = { promptTokens: 10, cachedTokens: 4, completionTokens: 5, reasoningTokens: 1 };
const timings = {
  loadMs: 0,
  queueMs: 1,
  prefillMs: 2,
  decodeMs: 3,
  ttftMs: 4,
  tokensPerSecond: 50,
};
const message = (id: string, role: Message['role'], rest: Partial<Message> = {}): Message => ({
  id,
  role,
  content: '',
  timestamp: '2026-03-02T12:00:00Z',
  images: [],
  ...rest,
});

/** Folds events that come 100 ms apart. */
function fold(start: Answer, events: ChatEvent[]): Answer {
  return events.reduce((answer, event, index) => reduce(answer, event, index * 100), start);
}

const opening: ChatEvent[] = [
  { type: 'message', message: message('u1', 'user', { content: 'hi' }) },
  { type: 'assistant_started', id: 'a1', model: 'm' },
];

describe('an answer', () => {
  it('shows the question before the server has it, and once afterwards', () => {
    const pending = asked('hi');
    expect(pending.entries).toMatchObject([{ id: PENDING, role: 'user', content: 'hi' }]);
    expect(fold(pending, opening).entries.map(({ id }) => id)).toEqual(['u1', 'a1']);
  });

  it('goes through loading and prefill', () => {
    const loading = fold(asked('hi'), [...opening, { type: 'loading', model: 'm' }]);
    expect(loading.phase).toBe('loading');
    const prefill = reduce(loading, { type: 'prefill', processed: 5, total: 10, cached: 4 }, 0);
    expect([prefill.phase, prefill.prefill]).toEqual([
      'prefill',
      { processed: 5, total: 10, cached: 4 },
    ]);
  });

  it('collects text and times the reasoning before it', () => {
    const answer = fold(asked('hi'), [
      ...opening,
      { type: 'reasoning', text: 'hm' },
      { type: 'reasoning', text: ', well' },
      { type: 'text', text: 'Hel' },
      { type: 'text', text: 'lo' },
      { type: 'finished', reason: 'length', usage, timings },
    ]);
    expect(answer.phase).toBe('over');
    expect(answer.entries[1]).toMatchObject({
      reasoning: 'hm, well',
      reasoningSeconds: 0.2,
      content: 'Hello',
      finishReason: 'length',
      usage,
      timings,
    });
  });

  it('follows a tool call from its first letter to its result', () => {
    const states: (string | undefined)[] = [];
    const events: ChatEvent[] = [
      { type: 'tool_call', call: { id: 'c', name: 'fs__read', server: 'fs', title: null } },
      { type: 'tool_arguments', id: 'c', text: '{"a"' },
      { type: 'tool_arguments', id: 'c', text: ':1}' },
      { type: 'tool_call_end', id: 'c' },
      { type: 'tool_approval', id: 'c', name: 'read', server: 'fs', arguments: '{"a":1}' },
      { type: 'tool_started', id: 'c' },
      { type: 'tool_result', id: 'c', state: 'failed', content: 'no', duration_ms: 12 },
    ];
    let answer = fold(asked('hi'), opening);
    for (const event of events) {
      answer = reduce(answer, event, 0);
      states.push(answer.entries[1]?.calls[0]?.state);
    }
    expect(states).toEqual([
      'writing',
      'writing',
      'writing',
      'waiting',
      'approval',
      'running',
      'failed',
    ]);
    expect(answer.entries[1]?.calls[0]).toMatchObject({
      name: 'read',
      arguments: '{"a":1}',
      result: 'no',
      durationMs: 12,
    });
  });

  it('gives results of an earlier round to the message that called', () => {
    const answer = fold(asked('hi'), [
      ...opening,
      { type: 'tool_call', call: { id: 'c', name: 'read', server: 'fs', title: null } },
      { type: 'assistant_started', id: 'a2', model: 'm' },
      { type: 'tool_result', id: 'c', state: 'done', content: 'yes', duration_ms: 1 },
      { type: 'text', text: 'So' },
    ]);
    expect(answer.entries[1]?.calls[0]?.result).toBe('yes');
    expect(answer.entries[2]).toMatchObject({ id: 'a2', content: 'So', calls: [] });
  });

  it('takes the final form of a message from the server', () => {
    const answer = fold(asked('hi'), [
      ...opening,
      { type: 'text', text: 'dra' },
      { type: 'message', message: message('a1', 'assistant', { content: 'final' }) },
    ]);
    expect(answer.entries).toHaveLength(2);
    expect(answer.entries[1]).toMatchObject({ content: 'final', finishReason: 'stop' });
  });

  it('waits for the model again after a round of tools', () => {
    const round = message('a1', 'assistant', { finishReason: 'tool_calls' });
    const answer = fold(asked('hi'), [
      ...opening,
      { type: 'tool_call', call: { id: 'c', name: 'read', server: 'fs', title: null } },
      { type: 'tool_result', id: 'c', state: 'done', content: 'yes', duration_ms: 1 },
      { type: 'message', message: round },
    ]);
    expect(answer.phase).toBe('waiting');
  });

  it('shows an error in place and ends what was under way', () => {
    const answer = fold(asked('hi'), [
      ...opening,
      { type: 'text', text: 'Well' },
      { type: 'tool_call', call: { id: 'c', name: 'read', server: null, title: null } },
      { type: 'error', code: 'oom', message: 'No memory.' },
    ]);
    expect(answer.phase).toBe('over');
    expect(answer.entries[1]).toMatchObject({
      content: 'Well',
      finishReason: 'error',
      error: 'No memory.',
      calls: [{ state: 'cancelled' }],
    });
  });

  it('is marked when it is stopped, even before its first event', () => {
    expect(interrupted(asked('hi'), 'cancelled', null, 0).entries).toMatchObject([
      { role: 'user', content: 'hi' },
      { role: 'assistant', finishReason: 'cancelled', error: null },
    ]);
  });

  it('never changes an earlier state', () => {
    const before = fold(asked('hi'), opening);
    const copy = structuredClone(before);
    reduce(before, { type: 'text', text: 'x' }, 0);
    expect(before).toEqual(copy);
  });

  it('carries the title', () => {
    expect(reduce(noAnswer, { type: 'title', title: 'T' }, 0).title).toBe('T');
  });
});

describe('the thread', () => {
  const stored = [message('u1', 'user'), message('a1', 'assistant', { content: 'stored' })];

  it('prefers the running version, then the stored one', () => {
    const live = [entryOf(message('a1', 'assistant', { content: 'newer' }))];
    expect(merge(stored, live, true)[1]?.content).toBe('newer');
    expect(merge(stored, live, false)[1]?.content).toBe('stored');
  });

  it('appends what is not stored, and keeps the identity of what is', () => {
    const live = [entryOf(message('u2', 'user'))];
    const merged = merge(stored, live, true);
    expect(merged.map(({ id }) => id)).toEqual(['u1', 'a1', 'u2']);
    expect(merge(stored, [], false)[0]).toBe(merged[0]);
  });

  it('joins the rounds of a tool loop into one turn', () => {
    const roles = ['user', 'assistant', 'assistant', 'user', 'user'] as const;
    const entries = roles.map((role, index) => entryOf(message(String(index), role)));
    expect(turnsOf(entries).map(({ entries: inTurn }) => inTurn.length)).toEqual([1, 2, 1, 1]);
  });

  it('reads messages of older versions', () => {
    expect(entryOf({ ...message('x', 'assistant', { content: 'old' }) })).toMatchObject({
      content: 'old',
      reasoning: '',
      calls: [],
      finishReason: 'stop',
    });
  });
});
