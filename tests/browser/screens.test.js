// Each screen in light and dark at three widths: a picture, and what axe finds.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, picture, seriousFindings } from './support/browser.js';
import { Home, Server } from './support/program.js';
import { answers, ask, SCRIPT } from './support/chat.js';

const SCREENS = ['chat', 'models', 'models/hub', 'server', 'mcp', 'settings', 'logs', 'welcome'];
const SCHEMES = ['light', 'dark'];
const WIDTHS = [1280, 900, 420];

let browser, home, server, conversation;

before(async () => {
  browser = await launch();
  // No hub answers there: the pictures show how that is said.
  home = await Home.make({ onboardingComplete: true, hfEndpoint: 'http://127.0.0.1:9' });
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

for (const scheme of SCHEMES) {
  for (const width of WIDTHS) {
    test(`screens in ${scheme}, ${width} wide`, async (t) => {
      const { page, context, errors } = await open(browser, server.uiUrl, {
        colorScheme: scheme,
        viewport: { width, height: 800 },
        reducedMotion: 'reduce',
      });
      await page.getByRole('navigation').first().waitFor();
      for (const screen of SCREENS) {
        await t.test(screen, async () => {
          const path = screen === 'chat' ? conversation : screen;
          await page.evaluate((hash) => (location.hash = hash), `#/${path}`);
          await page.getByRole('main').waitFor();
          await page.waitForTimeout(500);
          await picture(page, `${screen.replace('/', '-')}-${scheme}-${width}`);
          assert.deepEqual(await seriousFindings(page), []);
          const overflow = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.equal(overflow, 0, 'the page scrolls sideways');
        });
      }
      assert.deepEqual(errors, []);
      await context.close();
    });
  }
}

test('everything is there in Chinese', async () => {
  const { page, context } = await open(browser, server.uiUrl, { locale: 'zh-CN' });
  await page.getByRole('navigation').first().waitFor();
  for (const screen of SCREENS) {
    await page.evaluate((hash) => (location.hash = hash), `#/${screen}`);
    await page.getByRole('main').waitFor();
    await page.waitForTimeout(500);
    await picture(page, `${screen.replace('/', '-')}-zh`);
    assert.match(await page.getByRole('main').innerText(), /\p{Script=Han}/u, screen);
  }
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-Hans');
  await context.close();
});
