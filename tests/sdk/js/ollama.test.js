// `ollama`: chat, generate and what it asks about models.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Ollama } from "ollama";
import * as q from "./questions.js";
import { MODEL, played } from "./server.js";

const server = played();
const client = () => new Ollama({ host: server.url });
const user = (content) => [{ role: "user", content }];
const TOOLS = [
  {
    type: "function",
    function: {
      name: "weather",
      description: "Get the temperature in a city.",
      parameters: q.WEATHER_SCHEMA,
    },
  },
];

/** Text, thinking and calls of an answer, in one piece or many. */
async function ask(messages, { stream = false, ...options } = {}) {
  const reply = await client().chat({ model: MODEL, messages, stream, ...options });
  const parts = stream ? await Array.fromAsync(reply) : [reply];
  return {
    parts,
    text: parts.map((part) => part.message.content).join(""),
    thinking: parts.map((part) => part.message.thinking ?? "").join(""),
    calls: parts.flatMap((part) => part.message.tool_calls ?? []),
  };
}

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";

  test(`plain, ${how}`, async () => {
    const { parts, text } = await ask(user(q.PLAIN), { stream });
    assert.equal(text, q.PLAIN_ANSWER);
    assert.equal(parts.at(-1).done_reason, "stop");
    assert.ok(parts.at(-1).eval_count > 5);
    assert.ok(!stream || parts.length > 3);
  });

  test(`tools round trip, ${how}`, async () => {
    const messages = user(q.WARM_BOTH);
    const first = await ask(messages, { stream, tools: TOOLS });
    assert.equal(first.calls.length, 2);
    messages.push({ role: "assistant", content: first.text, tool_calls: first.calls });
    for (const call of first.calls) {
      messages.push({
        role: "tool",
        tool_name: call.function.name,
        content: q.weather(call.function.arguments),
      });
    }
    assert.equal((await ask(messages, { stream, tools: TOOLS })).text, q.WARM_BOTH_ANSWER);
  });

  test(`reasoning, ${how}`, async () => {
    const reply = await ask(user(q.SUM), { stream, think: true });
    assert.equal(reply.thinking.trim(), q.SUM_REASONING);
    assert.equal(reply.text, q.SUM_ANSWER);
  });
}

test("generate", async () => {
  const reply = await client().generate({ model: MODEL, prompt: q.PLAIN });
  assert.equal(reply.response, q.PLAIN_ANSWER);
});

test("models", async () => {
  const { models } = await client().list();
  assert.ok(models.some((model) => model.name.includes("qwen3-played")));
  const shown = await client().show({ model: MODEL });
  assert.ok(shown.capabilities.includes("tools"));
});

test("errors", async () => {
  const fails = (content, options, status) =>
    assert.rejects(
      client().chat({ model: MODEL, messages: user(content), ...options }),
      (error) => error.status_code === status,
    );
  await fails(q.PLAIN, { model: "no/such" }, 404);
  await fails(q.PLAIN, { options: { temperature: -1 } }, 400);
  await fails(q.TOO_LONG, {}, 400);
  await fails(q.TOO_LONG, { stream: true }, 400);
  await assert.rejects(ask(user(q.BREAK_OFF), { stream: true }), /breaks off/);
});
