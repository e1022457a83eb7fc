/** What a door answers when it refuses or fails. */

/** An error of the control routes, or `offline` (status 0) when no answer came at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly param?: string,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Reads `{error: {code, message, param?}}`; anything else becomes an error with the status alone. */
export function apiError(status: number, body: unknown): ApiError {
  const error = isRecord(body) && isRecord(body.error) ? body.error : undefined;
  const text = (key: string) => (typeof error?.[key] === 'string' ? error[key] : undefined);
  return new ApiError(
    status,
    text('code') ?? `http_${status}`,
    text('message') ?? `The server answered with status ${status}.`,
    text('param'),
  );
}

/** The error of a response that is not 2xx. */
export async function responseError(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  try {
    return apiError(response.status, JSON.parse(text));
  } catch {
    return apiError(response.status, undefined);
  }
}

/** Whether an error only says that the request was cancelled. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** The sentence to show a person for any thrown value. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
