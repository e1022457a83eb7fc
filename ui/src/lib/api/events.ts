/** The one `/x/events` stream of the app: keeps queries fresh and feeds the live stores. */
import type { QueryClient } from '@tanstack/svelte-query';
import { openStream } from './client';
import { ApiError } from './errors';
import { connection, feed } from './live.svelte';
import { queries } from './queries';
import { events } from './sse';
import type { DownloadJob, Event, McpServer } from './types';

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;

function replaced<T>(list: T[], next: T, isSame: (item: T) => boolean): T[] {
  return list.some(isSame) ? list.map((item) => (isSame(item) ? next : item)) : [...list, next];
}

function putDownload(cache: QueryClient, job: DownloadJob): void {
  cache.setQueryData(
    queries.downloads().queryKey,
    (old) => old && { jobs: replaced(old.jobs, job, (other) => other.id === job.id) },
  );
}

/** Puts a server that was answered or announced into the list. */
export function putMcpServer(cache: QueryClient, server: McpServer): void {
  cache.setQueryData(
    queries.mcp().queryKey,
    (old) =>
      old && {
        ...old,
        servers: replaced(old.servers, server, (other) => other.name === server.name),
      },
  );
}

/** Brings the caches up to date with one event. */
export function apply(cache: QueryClient, event: Event): void {
  const refetch = (...queryKey: unknown[]) => void cache.invalidateQueries({ queryKey });
  switch (event.type) {
    case 'door':
      cache.setQueryData(queries.door().queryKey, event.door);
      cache.setQueryData(queries.status().queryKey, (old) => old && { ...old, door: event.door });
      break;
    case 'model':
      refetch('models');
      refetch('status');
      break;
    case 'models_changed':
      refetch('models');
      refetch('hub');
      refetch('status');
      break;
    case 'download':
      putDownload(cache, event.job);
      break;
    case 'download_removed':
      refetch('downloads');
      break;
    case 'throughput':
      feed.throughput(event.throughput);
      break;
    case 'log':
      feed.log(event.entry);
      break;
    case 'conversation_changed':
      refetch('conversations');
      refetch('conversation', event.id);
      break;
    case 'conversation_removed':
      refetch('conversations');
      cache.removeQueries({ queryKey: ['conversation', event.id] });
      break;
    case 'settings_changed':
      refetch('settings');
      // The default model is one.
      refetch('models');
      break;
    case 'mcp_server':
      putMcpServer(cache, event.server);
      break;
    case 'mcp_server_removed':
    case 'mcp_changed':
      refetch('mcp');
      break;
    case 'keys_changed':
      refetch('keys');
      // Whether clients must send one.
      refetch('door');
      break;
    case 'lagged':
      void cache.invalidateQueries();
      break;
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** Follows the events until `signal` aborts; a lost stream is taken up again, more slowly each time. */
export async function followEvents(cache: QueryClient, signal: AbortSignal): Promise<void> {
  let wait = FIRST_RETRY_MS;
  while (!signal.aborted) {
    try {
      const response = await openStream('GET', '/x/events', undefined, signal);
      // Events that came while no connection was open are not sent again.
      if (connection.state === 'lost') void cache.invalidateQueries();
      connection.opened();
      wait = FIRST_RETRY_MS;
      for await (const event of events<Event>(response)) apply(cache, event);
    } catch (error) {
      if (signal.aborted) return;
      // Asking for the token is the app's next step, not another try.
      if (error instanceof ApiError && error.code === 'invalid_control_token') return;
    }
    if (signal.aborted) return;
    connection.lost();
    await pause(wait, signal);
    wait = Math.min(wait * 2, LAST_RETRY_MS);
  }
}
