/** The in-process door of the desktop window: one command per request, its body streamed over a channel. */
import type { Door } from './door';

/** What the shell sends for one request, in order: one head, chunks, then `end` or `failed`. */
export type DoorMessage =
  | { type: 'head'; status: number; headers: [string, string][] }
  | { type: 'chunk'; text: string }
  | { type: 'bytes'; base64: string }
  | { type: 'end' }
  | { type: 'failed'; message: string };

/** The two commands of the shell. */
export interface Shell {
  request(
    id: string,
    request: { method: string; path: string; headers: [string, string][]; body: string | null },
    onMessage: (message: DoorMessage) => void,
  ): Promise<unknown>;
  cancel(id: string): Promise<unknown>;
}

// Imported on demand: a browser never loads the shell's library.
async function tauriShell(): Promise<Shell> {
  const { Channel, invoke } = await import('@tauri-apps/api/core');
  return {
    request(id, request, onMessage) {
      const onEvent = new Channel<DoorMessage>();
      onEvent.onmessage = onMessage;
      return invoke('door_request', { id, request, onEvent });
    },
    cancel: (id) => invoke('door_cancel', { id }),
  };
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** A response whose status forbids a body must not be given one. */
const isBodiless = (status: number) => status === 204 || status === 205 || status === 304;

/** Makes a door of a shell, so that callers cannot tell it from `fetch`. */
export function doorOf(shell: () => Promise<Shell>): Door {
  return async (request) => {
    const { signal } = request;
    signal.throwIfAborted();
    const { request: send, cancel } = await shell();
    const id = crypto.randomUUID();
    const url = new URL(request.url);
    const text = request.method === 'GET' || request.method === 'HEAD' ? '' : await request.text();
    signal.throwIfAborted();

    return new Promise<Response>((resolve, reject) => {
      const encoder = new TextEncoder();
      let body: ReadableStreamDefaultController<Uint8Array> | undefined;
      let isOver = false;

      const finish = (error?: unknown) => {
        if (isOver) return;
        isOver = true;
        signal.removeEventListener('abort', onAbort);
        if (error === undefined) body?.close();
        else if (body) body.error(error);
        if (error !== undefined || !body) reject(error ?? new TypeError('The answer has no head.'));
      };
      const stop = (reason: unknown) => {
        if (isOver) return;
        finish(reason);
        void cancel(id);
      };
      const onAbort = () => stop(signal.reason);
      signal.addEventListener('abort', onAbort);

      const onMessage = (message: DoorMessage) => {
        if (isOver) return;
        switch (message.type) {
          case 'head': {
            const stream = new ReadableStream<Uint8Array>({
              start: (controller) => {
                body = controller;
              },
              cancel: (reason) => {
                body = undefined;
                stop(reason ?? new DOMException('The body was cancelled.', 'AbortError'));
              },
            });
            const { status, headers } = message;
            resolve(new Response(isBodiless(status) ? null : stream, { status, headers }));
            break;
          }
          case 'chunk':
            body?.enqueue(encoder.encode(message.text));
            break;
          case 'bytes':
            body?.enqueue(bytesOf(message.base64));
            break;
          case 'end':
            finish();
            break;
          case 'failed':
            finish(new TypeError(message.message));
            break;
        }
      };

      const parts = {
        method: request.method,
        path: url.pathname + url.search,
        headers: [...request.headers.entries()],
        body: text === '' ? null : text,
      };
      send(id, parts, onMessage).catch((error: unknown) =>
        finish(error instanceof Error ? error : new TypeError(String(error))),
      );
    });
  };
}

export const desktopDoor: Door = doorOf(tauriShell);
