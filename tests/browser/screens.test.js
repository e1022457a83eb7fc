// Each screen in light and dark at three widths: a picture, and what axe finds.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, picture, seriousFindings, settle } from './support/browser.js';
import { Home, Server } from './support/program.js';
import { answers, ask, SCRIPT } from './support/chat.js';

/** Screens that the navigation does not lead to. */
const OTHER_SCREENS = ['models/hub', 'welcome'];
const SCHEMES = ['light', 'dark'];
const WIDTHS = [1280, 900, 420];

/** No hub answers where this home looks for one: the pictures show how that is said. */
const NO_HUB = 'http://127.0.0.1:9';
/** The requests that fail for that reason, as the console reports them. */
const OF_NO_HUB = / 502 .*\/x\/hub\//;

let browser, home, server, conversation;

before(async () => {
  browser = await launch();
  home = await Home.make({ onboardingComplete: true, hfEndpoint: NO_HUB });
  await home.addPlayedModel();
  server = await Server.start(home, '--playback', SCRIPT);
  const { page, context } = await open(browser, server.uiUrl);
  await ask(page, 'How do I sort a list in Python?');
  await answers(page).getByText('changes the list').waitFor();
  await page.waitForURL(/#\/chat\/[0-9a-f-]{36}/i);
  conversation = page.url().split('#/')[1];
  await ask(page, 'What is 17 times 23?');
  await answers(page).getByText('391').waitFor();
  await context.close();
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await home?.remove();
});

/** All screens: those that the navigation of a page leads to, and the others. */
async function screens(page) {
  const links = page.getByRole('navigation').first().getByRole('link');
  await links.first().waitFor();
  const hrefs = await links.evaluateAll((found) => found.map((link) => link.getAttribute('href')));
  return [...hrefs.map((href) => href.replace('#/', '')), ...OTHER_SCREENS];
}

async function show(page, path) {
  await page.evaluate((hash) => (location.hash = hash), `#/${path}`);
  await page.getByRole('main').waitFor();
  await settle(page);
}

for (const scheme of SCHEMES) {
  for (const width of WIDTHS) {
    test(`screens in ${scheme}, ${width} wide`, async (t) => {
      const { page, context, errors } = await open(browser, server.uiUrl, {
        colorScheme: scheme,
        viewport: { width, height: 800 },
        reducedMotion: 'reduce',
      });
      for (const screen of await screens(page)) {
        await t.test(screen, async () => {
          await show(page, screen === 'chat' ? conversation : screen);
          await picture(page, `${screen.replace('/', '-')}-${scheme}-${width}`);
          assert.deepEqual(await seriousFindings(page), []);
          const overflow = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.equal(overflow, 0, 'the page scrolls sideways');
        });
      }
      assert.deepEqual(errors.filter((error) => !OF_NO_HUB.test(error)), []);
      await context.close();
    });
  }
}

test('everything is there in Chinese', async () => {
  const { page, context } = await open(browser, server.uiUrl, { locale: 'zh-CN' });
  for (const screen of await screens(page)) {
    await show(page, screen);
    await picture(page, `${screen.replace('/', '-')}-zh`);
    assert.match(await page.getByRole('main').innerText(), /\p{Script=Han}/u, screen);
  }
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-Hans');
  await context.close();
});
