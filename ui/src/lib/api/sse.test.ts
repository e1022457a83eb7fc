import { expect, it } from 'vitest';
import { events } from './sse';

const wire =
  ': keep-alive\n\ndata: {"a":"é"}\n\ndata: {"b":\ndata: 2}\r\n\r\nevent: x\ndata: [3]\n\n';
const frames = [{ a: 'é' }, { b: 2 }, [3]];
const bytes = new TextEncoder().encode(wire);

function response(parts: Uint8Array<ArrayBuffer>[], onCancel = () => {}): Response {
  const queue = [...parts];
  return new Response(
    new ReadableStream({
      pull(controller) {
        const next = queue.shift();
        if (next) controller.enqueue(next);
        else controller.close();
      },
      cancel: onCancel,
    }),
  );
}

async function all(source: Response): Promise<unknown[]> {
  const out: unknown[] = [];
  for await (const event of events(source)) out.push(event);
  return out;
}

it('reads the same frames at every split', async () => {
  expect(await all(response([bytes]))).toEqual(frames);
  expect(await all(response([...bytes].map((byte) => Uint8Array.of(byte))))).toEqual(frames);
  for (let at = 1; at < bytes.length; at += 1)
    expect(await all(response([bytes.slice(0, at), bytes.slice(at)]))).toEqual(frames);
});

it('cancels the body when its reader leaves', async () => {
  let isCancelled = false;
  const endless = response(
    Array.from({ length: 100 }, () => bytes),
    () => {
      isCancelled = true;
    },
  );
  for await (const event of events(endless)) {
    expect(event).toEqual(frames[0]);
    break;
  }
  expect(isCancelled).toBe(true);
});

it('throws what breaks the body', async () => {
  const broken = new Response(
    new ReadableStream({
      start(controller) {
        controller.enqueue(bytes);
        setTimeout(() => controller.error(new TypeError('network')), 5);
      },
    }),
  );
  const seen: unknown[] = [];
  await expect(
    (async () => {
      for await (const event of events(broken)) seen.push(event);
    })(),
  ).rejects.toThrow('network');
  expect(seen).toEqual(frames);
});

it('ends at once without a body', async () => {
  expect(await all(new Response(null))).toEqual([]);
});
