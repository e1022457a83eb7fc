/** Server-sent events of a response as an async iterator. */
import { createParser } from 'eventsource-parser';

/**
 * Yields the JSON of each `data:` frame. Leaving the loop cancels the body, which stops the sender;
 * a body that breaks off throws what the door threw.
 */
export async function* events<T>(response: Response): AsyncGenerator<T, void, undefined> {
  if (!response.body) return;
  const ready: string[] = [];
  const parser = createParser({ onEvent: ({ data }) => ready.push(data) });
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      for (const data of ready.splice(0)) yield JSON.parse(data) as T;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
