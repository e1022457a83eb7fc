// From a search on the hub to a chat with what was downloaded, with a pause and a crash between.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, picture } from './support/browser.js';
import { answers, ask } from './support/chat.js';
import { Hub } from './support/hub.js';
import { Home, Server } from './support/program.js';
import { until } from './support/until.js';

const NAME = 'SmolLM2-135M-Instruct-4bit';
const MODEL = `mlx-community/${NAME}`;
const SLOW = { bytes_per_second: 4_000_000 };

let browser, hub, home, server;

before(async () => {
  browser = await launch();
  hub = await Hub.withStarter(MODEL);
  home = await Home.make({ onboardingComplete: true, hfEndpoint: hub.url });
  server = await Server.start(home);
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await hub?.stop();
  await home?.remove();
});

async function job() {
  const { jobs } = await server.control('GET', '/x/downloads');
  return jobs.find(({ model }) => model === MODEL);
}

test('a download is paused, survives a crash, goes on, and answers', async () => {
  await hub.behave(SLOW);
  let { page, context } = await open(browser, `${server.url}/#token=${server.token}&route=/models/hub`);
  await page.getByRole('searchbox').fill('smollm2');
  await page.getByRole('link', { name: NAME, exact: true }).click();
  await page.getByText('Fits').first().waitFor();
  await page.getByRole('button', { name: `Download: ${MODEL}` }).click();
  await until(async () => (await job())?.done_bytes > 10_000_000);
  await picture(page, 'download');
  await page.getByRole('button', { name: `Pause: ${MODEL}` }).first().click();
  const resume = page.getByRole('button', { name: `Resume: ${MODEL}` }).first();
  await resume.waitFor();
  await until(async () => (await job()).state === 'paused');
  const paused = (await job()).done_bytes;
  await page.waitForTimeout(1000);
  assert.equal((await job()).done_bytes, paused, 'a pause is a pause');

  await resume.click();
  await until(async () => (await job()).done_bytes > paused + 10_000_000);
  await context.close();
  await server.kill();
  server = await Server.start(home);
  const found = await job();
  assert.ok(['paused', 'downloading', 'queued', 'listing'].includes(found.state), found.state);

  await hub.behave({});
  ({ page, context } = await open(browser, `${server.url}/#token=${server.token}&route=${encodeURIComponent(`/models/hub/${encodeURIComponent(MODEL)}`)}`));
  const again = page.getByRole('button', { name: `Resume: ${MODEL}` }).first();
  const load = page.getByRole('button', { name: `Load: ${MODEL}` }).first();
  // What was under way when it crashed goes on by itself; what a person paused waits.
  if ((await job()).state === 'paused') await again.click();
  await until(async () => (await job()).state === 'done', 120);
  await server.control('PATCH', `/x/models/${encodeURIComponent(MODEL)}/parameters`, {
    temperature: 0,
  });
  await load.click();
  await page.getByRole('link', { name: 'Chat' }).last().click();
  await ask(page, 'What is the capital of France?');
  await answers(page).getByText('Paris').waitFor({ timeout: 120_000 });
  await answers(page).getByText(/tok\/s/).waitFor();
  await context.close();
});

test('a hub that refuses is told of in words that help', async () => {
  await hub.behave({ refuse: 'unavailable' });
  const { page, context } = await open(browser, `${server.url}/#token=${server.token}&route=/models/hub`);
  // What was asked before is remembered for a while.
  await page.getByRole('searchbox').fill('135m');
  const retry = page.getByRole('button', { name: 'Try again' }).first();
  await retry.waitFor();
  await hub.behave({});
  await retry.click();
  await page.getByRole('link', { name: NAME, exact: true }).waitFor();
  await context.close();
});
