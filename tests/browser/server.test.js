// The TCP door and the keys of clients.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open } from './support/browser.js';
import { SCRIPT } from './support/chat.js';
import { Home, PLAYED_MODEL, Server } from './support/program.js';
import { until } from './support/until.js';

let browser, home, server;

before(async () => {
  browser = await launch();
  home = await Home.make({ onboardingComplete: true });
  await home.addPlayedModel();
  server = await Server.start(home, '--playback', SCRIPT);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await home?.remove();
});

function openServer() {
  return open(browser, `${server.url}/#token=${server.token}&route=/server`);
}

/** What a client that sends this key is answered. */
async function statusWith(key) {
  const response = await fetch(`${server.url}/v1/models`, {
    headers: key ? { authorization: `Bearer ${key}` } : {},
  });
  return response.status;
}

test('the address is shown, and what to paste into clients', async () => {
  const { page, context, errors } = await openServer();
  await page.getByText('The server is on').waitFor();
  await page.getByText(server.url, { exact: true }).first().waitFor();
  await page.getByRole('tab', { name: 'Claude Code' }).click();
  await page.getByRole('tabpanel').getByText(`ANTHROPIC_BASE_URL`).waitFor();
  await page.getByRole('tab', { name: 'curl' }).click();
  const snippet = page.getByRole('tabpanel').locator('code');
  await snippet.filter({ hasText: PLAYED_MODEL }).first().waitFor();
  assert.match(await snippet.first().innerText(), new RegExp(`${server.url}/v1/chat/completions`));
  assert.deepEqual(errors, []);
  await context.close();
});

test('keys are made, shown once, asked for and removed', async () => {
  assert.equal(await statusWith(null), 200);
  const { page, context } = await openServer();
  await page.getByRole('button', { name: 'New key' }).first().click();
  await page.getByRole('textbox', { name: 'Name' }).fill('laptop');
  await page.getByRole('button', { name: 'Create' }).click();
  const dialog = page.getByRole('dialog');
  const key = (await dialog.locator('code').first().innerText()).trim();
  await dialog.getByRole('button', { name: 'Done' }).click();
  assert.equal(await statusWith(null), 401);
  assert.equal(await statusWith(key), 200);
  assert.equal((await page.content()).includes(key), false);
  await page.getByRole('button', { name: 'Delete key laptop' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.getByText('laptop', { exact: true }).waitFor({ state: 'detached' });
  assert.equal(await statusWith(key), 401);
  await context.close();
});

test('the door is closed from the page, and the page says that it lost it', async () => {
  const { page, context } = await openServer();
  await page.getByRole('switch').first().click();
  await page.getByRole('button', { name: 'Switch off' }).click();
  await until(async () => {
    try {
      await fetch(`${server.url}/health`);
      return false;
    } catch {
      return true;
    }
  });
  await page.getByText('The connection to macMLX was lost.').waitFor();
  assert.equal(server.child.exitCode, null, 'the program goes on');
  await context.close();
});
