/** What a person can do with downloads. */
import type { QueryClient } from '@tanstack/svelte-query';
import { SvelteSet } from 'svelte/reactivity';
import { call, client, errorText } from '$lib/api';
import { toasts } from '$lib/components';

/** Ids of jobs, or of models for a job that is yet to be, with a request under way. */
const pending = new SvelteSet<string>();

async function run(
  cache: QueryClient,
  key: string,
  request: () => Promise<unknown>,
): Promise<boolean> {
  pending.add(key);
  let isDone = true;
  try {
    await request();
  } catch (error) {
    isDone = false;
    toasts.show({ message: errorText(error), tone: 'danger' });
  }
  await cache.invalidateQueries({ queryKey: ['downloads'] });
  pending.delete(key);
  return isDone;
}

const path = (id: string) => ({ params: { path: { id } } });

/** Each resolves to whether it was done; a refusal is shown as a message. */
export const jobs = {
  isPending: (key: string) => pending.has(key),
  start: (cache: QueryClient, model: string) =>
    run(cache, model, () => call(client.POST('/x/downloads', { body: { model } }))),
  pause: (cache: QueryClient, id: string) =>
    run(cache, id, () => call(client.POST('/x/downloads/{id}/pause', path(id)))),
  /** Goes on with a paused job, tries a failed one again. */
  resume: (cache: QueryClient, id: string) =>
    run(cache, id, () => call(client.POST('/x/downloads/{id}/resume', path(id)))),
  /** Cancels, or takes a finished job off the list. */
  remove: (cache: QueryClient, id: string) =>
    run(cache, id, () => call(client.DELETE('/x/downloads/{id}', path(id)))),
};
