// `@anthropic-ai/sdk`: messages, token counts and models.

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import * as q from "./questions.js";
import { MODEL, played } from "./server.js";

const server = played();
const client = () => new Anthropic({ baseURL: server.url, apiKey: "unused", maxRetries: 0 });
const body = (content, options = {}) => ({
  model: MODEL,
  max_tokens: 2000,
  messages: [{ role: "user", content }],
  ...options,
});
const create = (content, options) => client().messages.create(body(content, options));
const TOOLS = [
  {
    name: "weather",
    description: "Get the temperature in a city.",
    input_schema: q.WEATHER_SCHEMA,
  },
];
const thinking = { type: "enabled", budget_tokens: 1024 };

test("plain", async () => {
  const reply = await create(q.PLAIN);
  assert.deepEqual(
    reply.content.map((block) => [block.type, block.text]),
    [["text", q.PLAIN_ANSWER]],
  );
  assert.equal(reply.stop_reason, "end_turn");
});

test("stream", async () => {
  const pieces = [];
  const stream = client().messages.stream(body(q.PLAIN));
  stream.on("text", (text) => pieces.push(text));
  const final = await stream.finalMessage();
  assert.equal(pieces.join(""), q.PLAIN_ANSWER);
  assert.ok(pieces.length > 3);
  assert.equal(final.stop_reason, "end_turn");
  assert.ok(final.usage.output_tokens >= pieces.length);
});

for (const streamed of [false, true]) {
  test(`tools round trip, ${streamed ? "streamed" : "whole"}`, async () => {
    const ask = (messages) =>
      streamed
        ? client().messages.stream(body("", { messages, tools: TOOLS })).finalMessage()
        : create("", { messages, tools: TOOLS });
    const messages = [{ role: "user", content: q.WARM_BOTH }];
    const first = await ask(messages);
    assert.equal(first.stop_reason, "tool_use");
    const results = first.content
      .filter((block) => block.type === "tool_use")
      .map((block) => ({
        type: "tool_result",
        tool_use_id: block.id,
        content: q.weather(block.input),
      }));
    assert.equal(results.length, 2);
    messages.push({ role: "assistant", content: first.content });
    messages.push({ role: "user", content: results });
    assert.equal((await ask(messages)).content[0].text, q.WARM_BOTH_ANSWER);
  });
}

for (const streamed of [false, true]) {
  test(`reasoning, ${streamed ? "streamed" : "whole"}`, async () => {
    const reply = streamed
      ? await client().messages.stream(body(q.SUM, { thinking })).finalMessage()
      : await create(q.SUM, { thinking });
    const [thought, text] = reply.content;
    assert.equal(thought.thinking.trim(), q.SUM_REASONING);
    assert.ok(thought.signature);
    assert.equal(text.text, q.SUM_ANSWER);
  });
}

test("token count", async () => {
  const { max_tokens, ...request } = body(q.WARM, { tools: TOOLS });
  const counted = await client().messages.countTokens(request);
  const { usage } = await client().messages.create({ max_tokens, ...request });
  assert.equal(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
});

test("models", async () => {
  const ids = [];
  for await (const model of client().models.list({ limit: 1 })) ids.push(model.id);
  assert.ok(ids.includes(MODEL));
  assert.equal((await client().models.retrieve(MODEL)).id, MODEL);
});

test("errors", async () => {
  await assert.rejects(create(q.PLAIN, { model: "no/such" }), Anthropic.NotFoundError);
  await assert.rejects(create(q.PLAIN, { temperature: -1 }), Anthropic.BadRequestError);
  for (const stream of [false, true]) {
    await assert.rejects(create(q.TOO_LONG, { stream }), (error) => {
      assert.ok(error instanceof Anthropic.BadRequestError);
      assert.match(error.message, /prompt is too long/);
      return true;
    });
  }
  await assert.rejects(create(q.BUSY), (error) => error.status === 529);
  await assert.rejects(client().messages.stream(body(q.BREAK_OFF)).finalMessage(), /breaks off/);
});
