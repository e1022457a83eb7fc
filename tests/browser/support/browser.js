// A browser, pages in it, and what is wrong with them.
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { until } from './until.js';

const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Violations of these impacts are defects. */
const SERIOUS = ['serious', 'critical'];

/** Where pictures are kept; they are looked at, not compared. */
const PICTURES = process.env.MACMLX_PICTURES ?? join(import.meta.dirname, '../pictures');

export async function picture(page, name) {
  await mkdir(PICTURES, { recursive: true });
  await page.screenshot({ path: join(PICTURES, `${name}.png`) });
}

export function launch() {
  return chromium.launch({
    executablePath: process.env.MACMLX_CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
    ],
  });
}

/** Requests of each page that are not answered yet, save for streams, which stay open. */
const pending = new WeakMap();

/** What a page shows while it waits for something. */
const WAITING = '[aria-busy="true"], .animate-pulse';

/**
 * A page of a person who has not been here before. `errors` are what its console and scripts report,
 * a refused request with its address.
 */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({
    locale: 'en-US',
    viewport: { width: 1280, height: 800 },
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const errors = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(`${message.text()} ${message.location().url}`);
  });
  const open = new Set();
  pending.set(page, open);
  page.on('request', (request) => {
    if (request.headers().accept !== 'text/event-stream') open.add(request);
  });
  page.on('requestfinished', (request) => open.delete(request));
  page.on('requestfailed', (request) => open.delete(request));
  await page.goto(url);
  return { page, context, errors };
}

/** Waits until a page has all that it asked for and shows nothing that waits. */
export async function settle(page) {
  for (;;) {
    await page.locator(WAITING).first().waitFor({ state: 'detached' });
    await until(() => pending.get(page).size === 0);
    // What came is drawn within two frames, and may ask for more.
    await page.evaluate(
      () => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))),
    );
    const isWaiting = pending.get(page).size > 0 || (await page.locator(WAITING).count()) > 0;
    if (!isWaiting) return;
  }
}

/** What axe finds serious, in words. */
export async function seriousFindings(page) {
  // Past the page's own policy, which lets no foreign script in.
  const found = await page.evaluate(`(async () => {
    ${AXE}
    return (await axe.run(document, { resultTypes: ['violations'] })).violations;
  })()`);
  return found
    .filter((violation) => SERIOUS.includes(violation.impact))
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => node.html).join(' | ')}`);
}
