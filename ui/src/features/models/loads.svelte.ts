/** Loading and unloading as this page asked for it, so that all buttons of a model agree. */
import type { QueryClient } from '@tanstack/svelte-query';
import { SvelteMap } from 'svelte/reactivity';
import { call, client, errorText } from '$lib/api';

const busy = new SvelteMap<string, 'loading' | 'unloading'>();
const errors = new SvelteMap<string, string>();

async function run(
  cache: QueryClient,
  id: string,
  state: 'loading' | 'unloading',
  request: () => Promise<unknown>,
): Promise<void> {
  errors.delete(id);
  busy.set(id, state);
  try {
    await request();
  } catch (error) {
    errors.set(id, errorText(error));
  }
  // Until the list says so too, the button would jump back for a moment.
  await cache.invalidateQueries({ queryKey: ['models'] });
  busy.delete(id);
}

export const loads = {
  busy: (id: string) => busy.get(id),
  /** Why the last attempt failed. */
  error: (id: string) => errors.get(id),
  dismiss: (id: string) => errors.delete(id),
  load: (cache: QueryClient, id: string) =>
    run(cache, id, 'loading', () => call(client.POST('/x/models/load', { body: { model: id } }))),
  unload: (cache: QueryClient, id: string) =>
    run(cache, id, 'unloading', () =>
      call(client.POST('/x/models/unload', { body: { model: id } })),
    ),
};
