// Frames per second while an answer streams at 200 frames a second, and the work done at rest.
// Serves the built UI and fake routes itself: `npm run build && npm run bench [-- --chromium /path --dist dir]`.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const { values: args } = parseArgs({
  options: {
    chromium: { type: 'string', default: '/usr/bin/chromium' },
    dist: { type: 'string', default: fileURLToPath(new URL('../dist', import.meta.url)) },
    seconds: { type: 'string', default: '10' },
  },
});
const SECONDS = Number(args.seconds);
const RATE = 200;
const MIN_FPS = 50;
const MAX_IDLE_SHARE = 0.02;
const TOKEN = 'bench';
const now = '2026-03-02T12:00:00Z';

const paragraph = `The **scheduler** decides in \`pure\` functions and [acts](https://example.com) in a thin loop, so that every decision can be tested without a model. `;
const code = Array.from(
  { length: 24 },
  (_, line) => `    total += weights[${line}] * inputs[${line}]  # term ${line}\n`,
).join('');
const section = (n) =>
  `## Part ${n}\n\n${paragraph.repeat(4)}\n\n- first point\n- second point with \`code\`\n  - nested\n- third point\n\n\`\`\`python\ndef part_${n}(weights, inputs):\n    total = 0\n${code}    return total\n\`\`\`\n\n| token | share |\n|---|---:|\n| one | 0.5 |\n| two | 0.25 |\n\n`;
const words = Array.from({ length: 40 }, (_, n) => section(n + 1))
  .join('')
  .split(/(?<=\s)/);

const message = (id, role, content) => ({
  ...{ id, role, content, timestamp: now, images: [] },
  ...(role === 'assistant' ? { finishReason: 'stop', model: 'org/model' } : {}),
});
const conversation = {
  id: 'c',
  title: 'Bench',
  createdAt: now,
  updatedAt: now,
  modelID: 'org/model',
  systemPrompt: '',
  // A long history: it must cost nothing while the answer streams.
  messages: Array.from({ length: 60 }, (_, n) =>
    n % 2 ? message(`h${n}`, 'assistant', section(n)) : message(`h${n}`, 'user', `Question ${n}`),
  ),
};
const model = {
  ...{ id: 'org/model', path: '/m', state: 'complete', reason: null, model_type: 'qwen3' },
  ...{ is_supported: true, unsupported_reason: null, size_bytes: 1e9, parameters: 1.7e9 },
  ...{ quantization: '4-bit', context_length: 40960, modified: now, aliases: [], is_loaded: true },
  ...{
    is_loading: false,
    memory_bytes: 1e9,
    expires_in_seconds: null,
    commit: null,
    is_default: true,
  },
  capabilities: { chat: true, tools: true, reasoning: true, images: false },
};
const settings = { onboardingComplete: true, theme: 'light', language: 'en' };
const replies = {
  '/x/models': { models: [model], chosen: model.id },
  '/x/models/org%2Fmodel/parameters': {},
  '/x/downloads': { jobs: [] },
  '/x/conversations': {
    conversations: [
      {
        ...{ id: 'c', title: 'Bench', created_at: now, updated_at: now, model: 'org/model' },
        ...{ message_count: 60, preview: '' },
      },
    ],
  },
  '/x/conversations/c': conversation,
  '/x/settings': {
    ...{ settings, defaults: settings, path: '', warnings: [], restart_required: [] },
    has_hf_token: false,
  },
};
const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };

/** Sends the answer at an even rate, catching up when a timer came late. */
function stream(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (event) => response.write(`data: ${JSON.stringify(event)}\n\n`);
  send({ type: 'assistant_started', id: 'a', model: 'org/model' });
  const start = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.min(SECONDS * RATE, ((performance.now() - start) / 1000) * RATE);
    for (; sent < due; sent += 1) send({ type: 'text', text: words[sent % words.length] });
    if (sent < SECONDS * RATE) return;
    clearInterval(timer);
    const usage = { promptTokens: 1, cachedTokens: 0, completionTokens: sent, reasoningTokens: 0 };
    const timings = { loadMs: 0, queueMs: 0, prefillMs: 1, decodeMs: 1, ttftMs: 1 };
    send({
      type: 'finished',
      reason: 'stop',
      usage,
      timings: { ...timings, tokensPerSecond: RATE },
    });
    response.end();
  }, 5);
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost');
  if (pathname === '/x/chat') return stream(response);
  if (pathname === '/x/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    return response.write(': open\n\n');
  }
  if (pathname.startsWith('/x/')) {
    const reply = replies[pathname];
    response.writeHead(reply ? 200 : 404, { 'content-type': 'application/json' });
    return response.end(
      JSON.stringify(reply ?? { error: { code: 'not_found', message: pathname } }),
    );
  }
  const file = pathname === '/' ? '/index.html' : pathname;
  response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream' });
  return response.end(readFileSync(join(args.dist, file)));
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const base = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({
  executablePath: args.chromium,
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
await page.goto(`${base}/#token=${TOKEN}&route=/chat/c`);
await page.getByText('Question 58').waitFor();
await page.evaluate(() => {
  const record = { frames: [], longTasks: [] };
  window.benchRecord = record;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries())
      record.longTasks.push({ at: entry.startTime, ms: entry.duration });
  }).observe({ type: 'longtask' });
  const frame = (time) => {
    record.frames.push(time);
    if (!record.isDone) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
});
await page.getByRole('textbox', { name: 'Message' }).fill('Go on');
await page.keyboard.press('Enter');
await page.getByRole('button', { name: 'Stop' }).waitFor();
const begin = await page.evaluate(() => performance.now());
await page.waitForTimeout(SECONDS * 1000 - 500);
const end = await page.evaluate(() => performance.now());
const record = await page.evaluate(() => {
  window.benchRecord.isDone = true;
  return window.benchRecord;
});
await page.getByRole('button', { name: 'Send' }).waitFor();
const isAtEnd = await page.evaluate(() => {
  const thread = document.querySelector('[role=region][aria-label=Messages]');
  return thread.scrollHeight - thread.clientHeight - thread.scrollTop < 2;
});

// At rest: the share of the main thread that is busy while nothing happens.
await page.waitForTimeout(1500);
const session = await page.context().newCDPSession(page);
await session.send('Performance.enable');
const taskSeconds = async () =>
  (await session.send('Performance.getMetrics')).metrics.find((m) => m.name === 'TaskDuration')
    .value;
const [busyBefore, restBegin] = [await taskSeconds(), performance.now()];
await page.waitForTimeout(5000);
const idleShare = ((await taskSeconds()) - busyBefore) / ((performance.now() - restBegin) / 1000);
await browser.close();
server.closeAllConnections();
server.close();

const frames = record.frames.filter((time) => time >= begin && time <= end);
const gaps = frames.slice(1).map((time, index) => time - frames[index]);
gaps.sort((a, b) => a - b);
const fps = (frames.length / (end - begin)) * 1000;
const long = record.longTasks.filter(({ at }) => at >= begin && at <= end);
console.log(
  JSON.stringify({
    fps: Number(fps.toFixed(1)),
    p99_gap_ms: Number(gaps[Math.floor(gaps.length * 0.99)].toFixed(1)),
    worst_gap_ms: Number(gaps.at(-1).toFixed(1)),
    long_tasks: long.length,
    longest_task_ms: Math.round(Math.max(0, ...long.map(({ ms }) => ms))),
    stayed_at_end: isAtEnd,
    idle_main_thread_share: Number(idleShare.toFixed(4)),
  }),
);
if (fps < MIN_FPS || idleShare > MAX_IDLE_SHARE || !isAtEnd) process.exit(1);
