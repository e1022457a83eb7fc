/** Conversations that are being deleted: gone from the list at once, from disk when undo has passed. */
import type { QueryClient } from '@tanstack/svelte-query';
import { SvelteSet } from 'svelte/reactivity';
import { ApiError, call, client, errorText } from '$lib/api';
import { toasts } from '$lib/components';
import { t } from '$lib/i18n/index.svelte';

const ids = new SvelteSet<string>();

async function remove(id: string, cache: QueryClient): Promise<void> {
  try {
    await call(client.DELETE('/x/conversations/{id}', { params: { path: { id } } }));
  } catch (error) {
    const isGone = error instanceof ApiError && error.status === 404;
    if (!isGone) toasts.show({ message: errorText(error), tone: 'danger' });
  }
  await cache.invalidateQueries({ queryKey: ['conversations'] });
  ids.delete(id);
}

export const leaving = {
  has: (id: string) => ids.has(id),
  /** Hides a conversation, and deletes it unless the person takes it back. */
  start(id: string, cache: QueryClient) {
    ids.add(id);
    toasts.show({
      message: t('chat.deleted'),
      action: { label: t('chat.undo'), run: () => ids.delete(id) },
      onclose: () => void remove(id, cache),
    });
  },
};
