/** Every read of the control routes: its key, and how it is fetched. Events invalidate by these keys. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/svelte-query';
import { call, client } from './client';
import type { LogEntry } from './types';

export type HubSort = 'downloads' | 'likes' | 'modified' | 'trending';

/** The filter of a hub search; `author: '*'` is everyone. */
export interface HubSearch {
  search?: string;
  author?: string;
  sort?: HubSort;
  limit?: number;
}

/** Which log entries are wanted: a level and what matters more, one category, a text. */
export interface LogFilter {
  level: LogEntry['level'];
  category?: LogEntry['category'];
  search?: string;
}

/** The hub does not tell when it changes. */
const HUB_STALE_MS = 10 * 60_000;

const LOG_PAGE = 200;

export const queries = {
  status: () =>
    queryOptions({
      queryKey: ['status'],
      queryFn: ({ signal }) => call(client.GET('/x/status', { signal })),
    }),
  door: () =>
    queryOptions({
      queryKey: ['door'],
      queryFn: ({ signal }) => call(client.GET('/x/door', { signal })),
    }),
  models: () =>
    queryOptions({
      queryKey: ['models'],
      queryFn: ({ signal }) => call(client.GET('/x/models', { signal })),
    }),
  model: (id: string) =>
    queryOptions({
      queryKey: ['models', id],
      queryFn: ({ signal }) =>
        call(client.GET('/x/models/{id}', { params: { path: { id } }, signal })),
    }),
  modelParameters: (id: string) =>
    queryOptions({
      queryKey: ['models', id, 'parameters'],
      queryFn: ({ signal }) =>
        call(client.GET('/x/models/{id}/parameters', { params: { path: { id } }, signal })),
    }),
  modelFit: (id: string, contextTokens?: number) =>
    queryOptions({
      queryKey: ['models', id, 'fit', contextTokens],
      queryFn: ({ signal }) =>
        call(
          client.GET('/x/models/{id}/fit', {
            params: { path: { id }, query: { context_tokens: contextTokens } },
            signal,
          }),
        ),
    }),
  /** Page after page of a search. */
  hubModels: (query: HubSearch) =>
    infiniteQueryOptions({
      queryKey: ['hub', query],
      queryFn: ({ signal, pageParam }) =>
        call(
          client.GET('/x/hub/models', {
            params: { query: { ...query, cursor: pageParam } },
            signal,
          }),
        ),
      initialPageParam: undefined as string | undefined,
      getNextPageParam: (page) => page.next_cursor ?? undefined,
      staleTime: HUB_STALE_MS,
    }),
  hubModel: (id: string, revision?: string) =>
    queryOptions({
      queryKey: ['hub', id, revision],
      queryFn: ({ signal }) =>
        call(
          client.GET('/x/hub/models/{id}', {
            params: { path: { id }, query: { revision } },
            signal,
          }),
        ),
      staleTime: HUB_STALE_MS,
    }),
  downloads: () =>
    queryOptions({
      queryKey: ['downloads'],
      queryFn: ({ signal }) => call(client.GET('/x/downloads', { signal })),
    }),
  conversations: (search?: string) =>
    queryOptions({
      queryKey: ['conversations', { search: search ?? '' }],
      queryFn: ({ signal }) =>
        call(
          client.GET('/x/conversations', {
            params: { query: search ? { search } : {} },
            signal,
          }),
        ),
    }),
  conversation: (id: string) =>
    queryOptions({
      queryKey: ['conversation', id],
      queryFn: ({ signal }) =>
        call(client.GET('/x/conversations/{id}', { params: { path: { id } }, signal })),
    }),
  settings: () =>
    queryOptions({
      queryKey: ['settings'],
      queryFn: ({ signal }) => call(client.GET('/x/settings', { signal })),
    }),
  /** The newest entries, then page after page of older ones. Forgotten when no screen shows them. */
  logs: (filter: LogFilter) =>
    infiniteQueryOptions({
      queryKey: ['logs', filter],
      gcTime: 0,
      initialPageParam: undefined as number | undefined,
      queryFn: ({ pageParam, signal }) =>
        call(
          client.GET('/x/logs', {
            params: { query: { ...filter, limit: LOG_PAGE, before: pageParam } },
            signal,
          }),
        ),
      getNextPageParam: ({ entries, has_more }) =>
        has_more ? Math.min(...entries.map((entry) => entry.id)) : undefined,
    }),
  keys: () =>
    queryOptions({
      queryKey: ['keys'],
      queryFn: ({ signal }) => call(client.GET('/x/keys', { signal })),
    }),
  mcp: () =>
    queryOptions({
      queryKey: ['mcp'],
      queryFn: ({ signal }) => call(client.GET('/x/mcp', { signal })),
    }),
};
