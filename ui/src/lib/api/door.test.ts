import { expect, it, vi } from 'vitest';
import { doorOf, type DoorMessage, type Shell } from './door-desktop';

/** A shell whose messages the test sends by hand. */
function fakeShell() {
  let send: (message: DoorMessage) => void = () => undefined;
  const shell = {
    request: vi.fn<Shell['request']>((_id, _request, onMessage) => {
      send = onMessage;
      return Promise.resolve();
    }),
    cancel: vi.fn<Shell['cancel']>(() => Promise.resolve()),
  };
  return { shell, door: doorOf(() => Promise.resolve(shell)), send: (m: DoorMessage) => send(m) };
}

async function opened(fake: ReturnType<typeof fakeShell>, request: Request) {
  const answer = fake.door(request);
  await vi.waitFor(() => expect(fake.shell.request).toHaveBeenCalled());
  return answer;
}

it('passes method, path, query, headers and body on, and builds the response', async () => {
  const fake = fakeShell();
  const answer = opened(
    fake,
    new Request('http://localhost/x/models?limit=2', {
      method: 'POST',
      body: '{"a":1}',
      headers: { 'content-type': 'application/json' },
    }),
  );
  await vi.waitFor(() => expect(fake.shell.request).toHaveBeenCalled());
  expect(fake.shell.request.mock.calls[0]?.[1]).toEqual({
    method: 'POST',
    path: '/x/models?limit=2',
    headers: [['content-type', 'application/json']],
    body: '{"a":1}',
  });
  fake.send({ type: 'head', status: 201, headers: [['content-type', 'application/json']] });
  const response = await answer;
  expect([response.status, response.headers.get('content-type')]).toEqual([
    201,
    'application/json',
  ]);
  fake.send({ type: 'chunk', text: '{"é":' });
  fake.send({ type: 'bytes', base64: btoa('"\xc3') });
  fake.send({ type: 'bytes', base64: btoa('\xa9"}') });
  fake.send({ type: 'end' });
  expect(await response.json()).toEqual({ é: 'é' });
  expect(fake.shell.cancel).not.toHaveBeenCalled();
});

it('hands out the body while it streams', async () => {
  const fake = fakeShell();
  const answer = opened(fake, new Request('http://localhost/x/events'));
  await vi.waitFor(() => expect(fake.shell.request).toHaveBeenCalled());
  fake.send({ type: 'head', status: 200, headers: [] });
  const reader = (await answer).body?.getReader();
  fake.send({ type: 'chunk', text: 'one' });
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('one');
  await reader?.cancel();
  expect(fake.shell.cancel).toHaveBeenCalledTimes(1);
});

it('cancels in the shell when the signal aborts, before and after the head', async () => {
  for (const hasHead of [false, true]) {
    const fake = fakeShell();
    const stop = new AbortController();
    const answer = fake.door(new Request('http://localhost/x/chat', { signal: stop.signal }));
    await vi.waitFor(() => expect(fake.shell.request).toHaveBeenCalled());
    if (hasHead) fake.send({ type: 'head', status: 200, headers: [] });
    const outcome = hasHead ? answer.then((r) => r.text()) : answer;
    if (hasHead) await answer;
    stop.abort();
    await expect(outcome).rejects.toMatchObject({ name: 'AbortError' });
    expect(fake.shell.cancel).toHaveBeenCalledTimes(1);
  }
});

it('fails as fetch does when the shell fails, before and after the head', async () => {
  const early = fakeShell();
  const refused = early.door(new Request('http://localhost/x/status'));
  await vi.waitFor(() => expect(early.shell.request).toHaveBeenCalled());
  early.send({ type: 'failed', message: 'no router' });
  await expect(refused).rejects.toThrow('no router');

  const late = fakeShell();
  const answer = late.door(new Request('http://localhost/x/status'));
  await vi.waitFor(() => expect(late.shell.request).toHaveBeenCalled());
  late.send({ type: 'head', status: 200, headers: [] });
  late.send({ type: 'failed', message: 'broke off' });
  await expect((await answer).text()).rejects.toThrow('broke off');

  const broken = doorOf(() =>
    Promise.resolve({
      request: () => Promise.reject(new Error('no such command')),
      cancel: () => Promise.resolve(),
    }),
  );
  await expect(broken(new Request('http://localhost/x/status'))).rejects.toThrow('no such command');
});

it('accepts answers without a body', async () => {
  const fake = fakeShell();
  const answer = fake.door(new Request('http://localhost/x/logs', { method: 'DELETE' }));
  await vi.waitFor(() => expect(fake.shell.request).toHaveBeenCalled());
  fake.send({ type: 'head', status: 204, headers: [] });
  fake.send({ type: 'end' });
  const response = await answer;
  expect([response.status, await response.text()]).toEqual([204, '']);
});
