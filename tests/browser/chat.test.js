// A conversation with a model whose answers are written.
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, open } from './support/browser.js';
import { Home, Server } from './support/program.js';
import { answers, ask, SCRIPT } from './support/chat.js';
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

async function newChat() {
  const opened = await open(browser, server.uiUrl);
  await opened.page.getByRole('textbox', { name: 'Message' }).waitFor();
  return opened;
}

test('an answer is Markdown, and nothing in it runs', async () => {
  const { page, context, errors } = await newChat();
  await ask(page, 'What is the capital of France?');
  await answers(page).getByText('Paris', { exact: true }).waitFor();
  assert.equal(await answers(page).locator('strong').innerText(), 'Paris');
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await answers(page).locator('img, script').count(), 0);
  await answers(page).getByText(/\d+ tokens/).waitFor();
  assert.deepEqual(errors, []);
  await context.close();
});

test('the token leaves the address bar, and without it nothing is shown', async () => {
  const { page, context } = await newChat();
  assert.equal(new URL(page.url()).hash.includes('token'), false);
  await context.close();
  const stranger = await open(browser, `${server.url}/`);
  await stranger.page.getByText('This page needs the control token').waitFor();
  await stranger.context.close();
});

test('a conversation is kept, found again, renamed and deleted', async () => {
  const { page, context } = await newChat();
  await ask(page, 'What is the capital of Norway?');
  await answers(page).getByText('Oslo').waitFor();
  await page.waitForURL(/#\/chat\/[0-9a-f-]{36}/i);
  const id = page.url().split('/').at(-1);
  const file = join(home.data, 'conversations', `${id}.json`);
  await page.getByRole('button', { name: 'Send' }).waitFor();
  const kept = JSON.parse(await readFile(file, 'utf8'));
  assert.deepEqual(
    kept.messages.map(({ role, content }) => [role, content]),
    [
      ['user', 'What is the capital of Norway?'],
      ['assistant', 'The capital of Norway is **Oslo**.'],
    ],
  );

  await page.reload();
  await answers(page).getByText('Oslo').waitFor();

  const list = page.getByRole('navigation', { name: 'Conversations' });
  const search = page.getByRole('searchbox', { name: 'Search conversations' });
  await search.fill('Norway');
  await list.getByRole('link', { name: /France/ }).waitFor({ state: 'detached' });
  await list.getByRole('link', { name: /Norway/ }).hover();
  await list.getByRole('button', { name: /^Menu of/ }).click();
  await page.getByRole('menuitem', { name: 'Rename' }).click();
  await page.getByRole('textbox', { name: 'Title of the conversation' }).fill('Norwegian');
  await page.keyboard.press('Enter');
  await search.fill('');
  await list.getByRole('link', { name: 'Norwegian' }).waitFor();
  assert.equal(JSON.parse(await readFile(file, 'utf8')).title, 'Norwegian');

  await list.getByRole('link', { name: 'Norwegian' }).hover();
  await list.getByRole('button', { name: 'Menu of “Norwegian”' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Undo' }).click();
  await list.getByRole('link', { name: 'Norwegian' }).waitFor();
  await list.getByRole('link', { name: 'Norwegian' }).hover();
  await list.getByRole('button', { name: 'Menu of “Norwegian”' }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await list.getByRole('link', { name: 'Norwegian' }).waitFor({ state: 'detached' });
  // Once it cannot be taken back any more.
  await until(async () => !(await readdir(join(home.data, 'conversations'))).includes(`${id}.json`));
  await context.close();
});

test('an answer is stopped, marked, and given anew', async () => {
  const { page, context } = await newChat();
  await ask(page, 'Count slowly.');
  await answers(page).getByText(/two three/).waitFor();
  await page.keyboard.press('Escape');
  await answers(page).getByText('Stopped.').waitFor();
  const text = await answers(page).first().innerText();
  assert.ok(text.includes('one two') && !text.includes('thirty'), text);
  await page.getByRole('button', { name: 'Answer again' }).click();
  await answers(page).getByText(/two three/).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await answers(page).getByText('Stopped.').waitFor();
  assert.equal(await answers(page).count(), 1);
  await context.close();
});

test('a question is put differently', async () => {
  const { page, context } = await newChat();
  await ask(page, 'What is the capital of France?');
  await answers(page).getByText('Paris', { exact: true }).waitFor();
  const question = page.getByText('What is the capital of France?').last();
  await question.hover();
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByRole('textbox', { name: 'Edit the message' }).fill('And the capital of Norway?');
  await page.getByRole('button', { name: 'Send again' }).click();
  await answers(page).getByText('Oslo').waitFor();
  assert.equal(await answers(page).count(), 1);
  await context.close();
});

test('reasoning is folded away once the answer comes', async () => {
  const { page, context } = await newChat();
  await ask(page, 'What is 17 times 23?');
  await answers(page).getByText('391').waitFor();
  const block = answers(page).getByRole('button', { name: /^Reasoned for/ });
  await block.waitFor();
  assert.equal(await answers(page).getByText('17 * 20 = 340').isVisible(), false);
  await block.click();
  await answers(page).getByText('17 * 20 = 340').waitFor();
  await context.close();
});

test('what goes wrong is said where it went wrong', async () => {
  const { page, context } = await newChat();
  await ask(page, 'Break off.');
  await answers(page).getByRole('alert').waitFor();
  assert.match(await answers(page).innerText(), /These are/);
  await page.getByRole('link', { name: 'New chat' }).or(page.getByRole('button', { name: 'New chat' })).first().click();
  await ask(page, 'Be busy.');
  await page.getByText(/busy/i).last().waitFor();
  await context.close();
});
