/** What the rest of the UI may use of the doors. */
export { call, client, openStream } from './client';
export { isDesktop } from './door';
export { ApiError, errorText, isAbort } from './errors';
export { connection, live } from './live.svelte';
export { loginItem } from './login-item';
export { queries } from './queries';
export type { HubSearch, HubSort, LogFilter } from './queries';
export { events } from './sse';
export { token } from './token.svelte';
export type * from './types';
