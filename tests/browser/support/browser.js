// A browser, pages in it, and what is wrong with them.
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

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

/** A page of a person who has not been here before. `errors` are what its console and scripts report. */
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
    if (message.type() === 'error') errors.push(message.text());
  });
  await page.goto(url);
  return { page, context, errors };
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
