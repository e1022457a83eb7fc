/** The typed client of the control routes. */
import createClient from 'openapi-fetch';
import { door, origin } from './door';
import { ApiError, apiError, isAbort, responseError } from './errors';
import type { paths } from './schema.gen';

export const client = createClient<paths>({ baseUrl: origin, fetch: (request) => door(request) });

/** The data of an answer, or an `ApiError`: `await call(client.GET('/x/status'))`. */
export async function call<T>(
  answer: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  let settled;
  try {
    settled = await answer;
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError(0, 'offline', error instanceof Error ? error.message : String(error));
  }
  if (!settled.response.ok) throw apiError(settled.response.status, settled.error);
  return settled.data as T;
}

/** Opens a route that answers with an event stream; a refusal becomes an `ApiError`. */
export async function openStream(
  method: 'GET' | 'POST',
  path: string,
  body: unknown,
  signal: AbortSignal,
): Promise<Response> {
  const headers: Record<string, string> = { accept: 'text/event-stream' };
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response;
  try {
    response = await door(
      new Request(origin + path, {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        signal,
      }),
    );
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError(0, 'offline', error instanceof Error ? error.message : String(error));
  }
  if (!response.ok) throw await responseError(response);
  return response;
}
