// The first start: from the welcome to an answer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, seriousFindings } from './support/browser.js';
import { answers, ask } from './support/chat.js';
import { Hub } from './support/hub.js';
import { Home, Server } from './support/program.js';
import { until } from './support/until.js';

/** What is recommended where MLX has no GPU; the files are those of a smaller model. */
const MODEL = 'mlx-community/Qwen3-0.6B-4bit';

let browser, hub, home, server;

before(async () => {
  browser = await launch();
  hub = await Hub.withStarter(MODEL);
  home = await Home.make({ hfEndpoint: hub.url });
  server = await Server.start(home);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await hub?.stop();
  await home?.remove();
});

test('from the welcome to an answer', async () => {
  await hub.behave({ bytes_per_second: 8_000_000 });
  const { page, context, errors } = await open(browser, server.uiUrl);
  await page.getByRole('heading', { name: 'Welcome to macMLX' }).waitFor();
  assert.deepEqual(await seriousFindings(page), []);
  await page.getByRole('link', { name: 'Continue' }).or(page.getByRole('button', { name: 'Continue' })).click();
  await page.getByRole('heading', { name: 'Where models live' }).waitFor();
  await page.getByText(/free on this disk/).waitFor();
  await page.getByRole('link', { name: 'Continue' }).or(page.getByRole('button', { name: 'Continue' })).click();
  await page.getByRole('heading', { name: 'Choose your first model' }).waitFor();
  await page.getByText('Recommended').waitFor();
  await page.getByRole('button', { name: /^Download/ }).click();

  // The download goes on while the rest is shown, and while the page is loaded anew.
  await page.getByRole('heading', { name: 'Use it from other apps' }).waitFor();
  await until(async () => (await server.control('GET', '/x/downloads')).jobs[0].done_bytes > 1_000_000);
  await page.reload();
  await page.getByRole('heading', { name: 'Use it from other apps' }).waitFor();
  await page.getByText(`${server.url}/v1`).first().waitFor();
  await page.getByRole('button', { name: /^Start chatting|^Open chat/ }).last().click();
  const { settings } = await until(async () => {
    const reply = await server.control('GET', '/x/settings');
    return reply.settings.onboardingComplete && reply;
  });
  assert.equal(settings.onboardingComplete, true);

  await until(async () => (await server.control('GET', '/x/downloads')).jobs[0].state === 'done', 60);
  await server.control('PATCH', `/x/models/${encodeURIComponent(MODEL)}/parameters`, {
    temperature: 0,
  });
  await page.goto(`${server.url}/#/chat/new`);
  await ask(page, 'What is the capital of France?');
  await answers(page).getByText('Paris').waitFor({ timeout: 120_000 });
  assert.deepEqual(errors, []);
  await context.close();

  const later = await open(browser, server.uiUrl);
  await later.page.getByRole('textbox', { name: 'Message' }).waitFor();
  await later.context.close();
});
