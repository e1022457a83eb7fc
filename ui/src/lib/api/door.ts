/** A door: the way a request of the UI reaches the router, by HTTP or inside the desktop process. */
import { desktopDoor } from './door-desktop';
import { responseError } from './errors';
import { token } from './token.svelte';

/** Works like `fetch`; a response may come while its body still streams. */
export type Door = (request: Request) => Promise<Response>;

/** Whether the page runs in the desktop window. */
export const isDesktop = typeof window !== 'undefined' && '__TAURI_INTERNALS__' in window;

/** Where requests are addressed; in the desktop window nothing is ever sent there. */
export const origin = isDesktop
  ? 'http://localhost'
  : typeof location === 'undefined'
    ? 'http://localhost'
    : location.origin;

/** The door over HTTP to the server that served this page. */
export const browserDoor: Door = async (request) => {
  if (token.value) request.headers.set('authorization', `Bearer ${token.value}`);
  const response = await window.fetch(request);
  if (response.status === 401) {
    const error = await responseError(response.clone());
    if (error.code === 'invalid_control_token') token.refuse();
  }
  return response;
};

/** The door of this page. */
export const door: Door = isDesktop ? desktopDoor : browserDoor;
