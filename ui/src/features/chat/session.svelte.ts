/** The running answers, one a conversation; they go on while another screen is shown. */
import type { QueryClient } from '@tanstack/svelte-query';
import { SvelteSet } from 'svelte/reactivity';
import {
  ApiError,
  call,
  client,
  errorText,
  events,
  isAbort,
  openStream,
  queries,
  type ChatEvent,
  type ChatRequest,
} from '$lib/api';
import { t } from '$lib/i18n/index.svelte';
import { asked, interrupted, noAnswer, reduce, type Answer } from './answer';

export type Decision = 'deny' | 'allow_once' | 'allow_always';

/** Ids of conversations that are being answered. */
export const running = new SvelteSet<string>();

export class ChatSession {
  /** What the event stream has said so far. */
  answer = $state.raw<Answer>(noAnswer);
  isRunning = $state(false);
  /** Why the last question was not taken; what was refused is not part of the conversation. */
  refusal = $state.raw<unknown>(null);

  readonly id: string;
  readonly #cache: QueryClient;
  #stop = new AbortController();
  #arrived: ChatEvent[] = [];
  #frame: number | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(id: string, cache: QueryClient) {
    this.id = id;
    this.#cache = cache;
  }

  /** Asks, and follows the answer to its end; false if the question was refused. */
  async ask(request: Omit<ChatRequest, 'conversation_id'>): Promise<boolean> {
    if (this.isRunning) return false;
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    this.refusal = null;
    this.answer = asked(request.content ?? undefined);
    this.#setRunning(true);
    let isTaken = false;
    try {
      const body: ChatRequest = { ...request, conversation_id: this.id };
      const response = await openStream('POST', '/x/chat', body, signal);
      isTaken = true;
      for await (const event of events<ChatEvent>(response)) this.#arrive(event);
      this.#flush();
      if (this.answer.phase !== 'over') this.#interrupt('error', t('chat.brokenOff'));
    } catch (error) {
      this.#flush();
      if (signal.aborted || isAbort(error)) this.#interrupt('cancelled', null);
      else if (isTaken) this.#interrupt('error', errorText(error));
      else {
        this.answer = noAnswer;
        this.refusal = error;
      }
    } finally {
      this.#setRunning(false);
    }
    // A refused question may still have changed what is there: fetch in any case.
    void this.#cache.invalidateQueries({ queryKey: queries.conversation(this.id).queryKey });
    return isTaken || signal.aborted;
  }

  /** Stops the answer; what was written stays. */
  stop(): void {
    this.#stop.abort();
  }

  /** Forgets what the last answer said: the stored conversation was changed. */
  reset(): void {
    this.answer = noAnswer;
    this.refusal = null;
  }

  /** Answers a tool call that waits for leave. */
  async decide(callId: string, decision: Decision): Promise<void> {
    const params = { path: { call_id: callId } };
    try {
      await call(client.POST('/x/chat/approvals/{call_id}', { params, body: { decision } }));
    } catch (error) {
      // Decided elsewhere, or over already: the stream tells what became of it.
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    }
  }

  #setRunning(isRunning: boolean): void {
    this.isRunning = isRunning;
    if (isRunning) running.add(this.id);
    else running.delete(this.id);
  }

  // Events are folded once a frame, however many came; a hidden page gets no frames.
  #arrive(event: ChatEvent): void {
    this.#arrived.push(event);
    if (this.#frame !== null || this.#timer !== null) return;
    if (document.hidden) this.#timer = setTimeout(() => this.#flush(), 100);
    else this.#frame = requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#frame = this.#timer = null;
    const now = performance.now();
    const before = this.answer.title;
    this.answer = this.#arrived.reduce((answer, event) => reduce(answer, event, now), this.answer);
    this.#arrived = [];
    if (this.answer.title !== before)
      void this.#cache.invalidateQueries({ queryKey: ['conversations'] });
  }

  #interrupt(reason: 'cancelled' | 'error', error: string | null): void {
    this.answer = interrupted(this.answer, reason, error, performance.now());
  }
}

const sessions = new Map<string, ChatSession>();

/** The session of a conversation. */
export function sessionOf(id: string, cache: QueryClient): ChatSession {
  const session = sessions.get(id) ?? new ChatSession(id, cache);
  sessions.set(id, session);
  return session;
}
