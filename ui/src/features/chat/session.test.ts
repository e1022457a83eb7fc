import { QueryClient } from '@tanstack/svelte-query';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { ChatEvent } from '$lib/api';
import { running, sessionOf } from './session.svelte';

let body: ReadableStreamDefaultController<Uint8Array>;
let signal: AbortSignal;
let requests: { url: string; body: unknown }[];

const send = (event: ChatEvent) =>
  body.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`));

beforeEach(() => {
  requests = [];
  vi.stubGlobal('fetch', async (request: Request) => {
    requests.push({ url: new URL(request.url).pathname, body: await request.clone().json() });
    signal = request.signal;
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        body = controller;
        signal.addEventListener('abort', () => controller.error(signal.reason));
      },
    });
    return new Response(stream);
  });
});
afterEach(() => vi.unstubAllGlobals());

const fresh = () => sessionOf(crypto.randomUUID(), new QueryClient());

it('asks, folds events a frame at a time, and ends', async () => {
  const session = fresh();
  const over = session.ask({ content: 'hi', model: 'm' });
  expect([session.isRunning, running.has(session.id)]).toEqual([true, true]);
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  expect(requests[0]).toEqual({
    url: '/x/chat',
    body: { conversation_id: session.id, content: 'hi', model: 'm' },
  });
  send({ type: 'assistant_started', id: 'a', model: 'm' });
  send({ type: 'text', text: 'Hel' });
  send({ type: 'text', text: 'lo' });
  await vi.waitFor(() => expect(session.answer.entries.at(-1)?.content).toBe('Hello'));
  send({
    type: 'finished',
    reason: 'stop',
    usage: { promptTokens: 1, cachedTokens: 0, completionTokens: 2, reasoningTokens: 0 },
    timings: { loadMs: 0, queueMs: 0, prefillMs: 0, decodeMs: 0, ttftMs: 0, tokensPerSecond: 1 },
  });
  body.close();
  expect(await over).toBe(true);
  expect([session.isRunning, running.has(session.id)]).toEqual([false, false]);
  expect(session.answer.entries.at(-1)?.finishReason).toBe('stop');
});

it('stops: the request is aborted, what was written stays and is marked', async () => {
  const session = fresh();
  const over = session.ask({ content: 'hi' });
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  send({ type: 'assistant_started', id: 'a', model: 'm' });
  send({ type: 'text', text: 'Half' });
  await vi.waitFor(() => expect(session.answer.entries.at(-1)?.content).toBe('Half'));
  session.stop();
  expect(await over).toBe(true);
  expect(signal.aborted).toBe(true);
  expect(session.answer.entries.at(-1)).toMatchObject({
    content: 'Half',
    finishReason: 'cancelled',
  });
});

it('marks an answer that breaks off without an end', async () => {
  const session = fresh();
  const over = session.ask({ content: 'hi' });
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  send({ type: 'assistant_started', id: 'a', model: 'm' });
  body.close();
  await over;
  expect(session.answer.entries.at(-1)?.finishReason).toBe('error');
});

it('gives a refused question back with the reason', async () => {
  vi.stubGlobal('fetch', () =>
    Promise.resolve(
      new Response(JSON.stringify({ error: { code: 'busy', message: 'It answers already.' } }), {
        status: 409,
      }),
    ),
  );
  const session = fresh();
  expect(await session.ask({ content: 'hi' })).toBe(false);
  expect(session.answer.entries).toEqual([]);
  expect(session.refusal).toMatchObject({ status: 409, code: 'busy' });
});

it('takes one question at a time', async () => {
  const session = fresh();
  const over = session.ask({ content: 'one' });
  expect(await session.ask({ content: 'two' })).toBe(false);
  await vi.waitFor(() => expect(requests).toHaveLength(1));
  session.stop();
  await over;
});

it('sends a decision, and does not mind that it came too late', async () => {
  const session = fresh();
  const late = new Response('{"error":{"code":"approval_not_found","message":"x"}}', {
    status: 404,
  });
  vi.stubGlobal('fetch', async (request: Request) => {
    requests.push({ url: new URL(request.url).pathname, body: await request.json() });
    return requests.length > 1 ? late : new Response(null, { status: 204 });
  });
  await session.decide('c/1', 'allow_once');
  await session.decide('c/1', 'deny');
  expect(requests[0]).toEqual({
    url: '/x/chat/approvals/c%2F1',
    body: { decision: 'allow_once' },
  });
});
