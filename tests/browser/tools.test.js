// A model uses a tool of a real MCP server, and a person says whether it may.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { join } from 'node:path';
import { launch, open, picture } from './support/browser.js';
import { Home, Server } from './support/program.js';
import { answers, ask, SCRIPT } from './support/chat.js';
import { until } from './support/until.js';

const QUESTION = 'Please try the echo tool.';

let browser, home, server;

before(async () => {
  browser = await launch();
  home = await Home.make({ onboardingComplete: true });
  await home.addPlayedModel();
  await home.write('mcp.json', {
    mcpServers: {
      everything: {
        command: process.env.MACMLX_MCP_NODE,
        args: [
          join(
            process.env.MACMLX_MCP_PACKAGES,
            '@modelcontextprotocol/server-everything/dist/index.js',
          ),
          'stdio',
        ],
      },
    },
  });
  server = await Server.start(home, '--playback', SCRIPT);
  await until(async () => {
    const { servers } = await server.control('GET', '/x/mcp');
    return servers[0]?.state === 'running';
  });
});

after(async () => {
  await browser?.close();
  await server?.stop();
  await home?.remove();
});

test('a tool runs once it is allowed, or never', async () => {
  const { page, context, errors } = await open(browser, server.uiUrl);
  await ask(page, QUESTION);
  const card = answers(page).getByRole('region', { name: /^Tool / });
  await card.getByText('Waits for you').waitFor();
  await card.getByText('"bonjour"').waitFor();
  await picture(page, 'tool-approval');
  await card.getByRole('button', { name: 'Deny' }).click();
  await card.getByText('Denied').waitFor();
  await answers(page).getByText('Then I will do without the tool.').waitFor();

  await page.getByRole('button', { name: 'Answer again' }).click();
  await card.getByRole('button', { name: 'Allow once' }).click();
  await card.getByText('Done').waitFor();
  await answers(page).getByText('bonjour', { exact: true }).waitFor();
  await card.getByRole('button', { name: /echo/i }).click();
  await card.getByText('Echo: bonjour').waitFor();
  assert.deepEqual(errors, []);
  await context.close();
});

test('a tool that may always run is not asked about again, until it is never to run', async () => {
  const { page, context } = await open(browser, server.uiUrl);
  await ask(page, QUESTION);
  const card = answers(page).last().getByRole('region', { name: /^Tool / });
  await card.getByRole('button', { name: 'Always' }).click();
  await answers(page).last().getByText('bonjour', { exact: true }).waitFor();
  const { settings } = await server.control('GET', '/x/settings');
  assert.equal(settings.toolPolicies.everything__echo, 'always');

  await ask(page, QUESTION);
  await answers(page).nth(1).getByText('bonjour', { exact: true }).waitFor();

  await page.goto(`${server.url}/#/mcp`);
  await page.getByRole('button', { name: /everything/ }).first().click();
  await page.getByRole('radiogroup', { name: /echo/ }).getByRole('radio', { name: 'Never' }).click();
  await until(async () => {
    const { settings } = await server.control('GET', '/x/settings');
    return settings.toolPolicies.everything__echo === 'never';
  });
  await context.close();
});
