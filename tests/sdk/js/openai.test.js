// `openai`: chat completions and responses.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import * as q from "./questions.js";
import { MODEL, played } from "./server.js";

const server = played();
const client = (options = {}) =>
  new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused", maxRetries: 0, ...options });
const user = (content) => [{ role: "user", content }];
const chat = (content, options = {}) =>
  client().chat.completions.create({ model: MODEL, messages: user(content), ...options });
const FUNCTION = {
  name: "weather",
  description: "Get the temperature in a city.",
  parameters: q.WEATHER_SCHEMA,
};

test("chat: plain", async () => {
  const reply = await chat(q.PLAIN);
  assert.equal(reply.choices[0].message.content, q.PLAIN_ANSWER);
  assert.equal(reply.choices[0].finish_reason, "stop");
  assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
});

test("chat: stream", async () => {
  const pieces = [];
  let finish;
  for await (const chunk of await chat(q.PLAIN, { stream: true })) {
    pieces.push(chunk.choices[0]?.delta.content ?? "");
    finish = chunk.choices[0]?.finish_reason ?? finish;
  }
  assert.equal(pieces.join(""), q.PLAIN_ANSWER);
  assert.ok(pieces.length > 3);
  assert.equal(finish, "stop");
});

test("chat: stream helper", async () => {
  const stream = client().chat.completions.stream({ model: MODEL, messages: user(q.PLAIN) });
  assert.equal(await stream.finalContent(), q.PLAIN_ANSWER);
});

for (const stream of [false, true]) {
  test(`chat: functions are run, ${stream ? "streamed" : "whole"}`, async () => {
    const cities = [];
    const runner = client().chat.completions.runTools({
      model: MODEL,
      messages: user(q.WARM_BOTH),
      stream,
      tools: [
        {
          type: "function",
          function: {
            ...FUNCTION,
            parse: JSON.parse,
            function: (input) => {
              cities.push(input.city);
              return q.weather(input);
            },
          },
        },
      ],
    });
    assert.equal(await runner.finalContent(), q.WARM_BOTH_ANSWER);
    assert.deepEqual(cities, ["Paris", "Oslo"]);
  });
}

test("chat: reasoning", async () => {
  const { message } = (await chat(q.SUM)).choices[0];
  assert.equal(message.content, q.SUM_ANSWER);
  assert.equal(message.reasoning_content.trim(), q.SUM_REASONING);
  const plain = (await chat(q.SUM, { reasoning_effort: "none" })).choices[0].message;
  assert.equal(plain.content, q.SUM_ANSWER);
  assert.ok(!plain.reasoning_content);
});

test("chat: errors", async () => {
  await assert.rejects(chat(q.PLAIN, { model: "no/such" }), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.code, "model_not_found");
    return true;
  });
  await assert.rejects(chat(q.PLAIN, { temperature: -1 }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, "temperature");
    return true;
  });
  for (const stream of [false, true]) {
    await assert.rejects(chat(q.TOO_LONG, { stream }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.code, "context_length_exceeded");
      return true;
    });
  }
  await assert.rejects(chat(q.BUSY), /busy/);
  await assert.rejects(async () => {
    for await (const _ of await chat(q.BREAK_OFF, { stream: true }));
  }, /breaks off/);
});

test("models", async () => {
  const ids = [];
  for await (const model of client().models.list()) ids.push(model.id);
  assert.ok(ids.includes(MODEL));
  assert.equal((await client().models.retrieve(MODEL)).id, MODEL);
});

const respond = (input, options = {}) =>
  client().responses.create({ model: MODEL, input, ...options });
const TOOLS = [{ type: "function", strict: false, ...FUNCTION }];

function outputs(response) {
  return response.output
    .filter((item) => item.type === "function_call")
    .map((item) => ({
      type: "function_call_output",
      call_id: item.call_id,
      output: q.weather(JSON.parse(item.arguments)),
    }));
}

test("responses: plain", async () => {
  const reply = await respond(q.PLAIN);
  assert.equal(reply.output_text, q.PLAIN_ANSWER);
  assert.equal(reply.status, "completed");
});

test("responses: stream helper", async () => {
  const deltas = [];
  const stream = client().responses.stream({ model: MODEL, input: q.PLAIN });
  stream.on("response.output_text.delta", (event) => deltas.push(event.delta));
  const final = await stream.finalResponse();
  assert.equal(deltas.join(""), q.PLAIN_ANSWER);
  assert.ok(deltas.length > 3);
  assert.equal(final.output_text, q.PLAIN_ANSWER);
});

test("responses: tools round trip, whole", async () => {
  const first = await respond(q.WARM_BOTH, { tools: TOOLS });
  const answers = outputs(first);
  assert.equal(answers.length, 2);
  const input = [{ role: "user", content: q.WARM_BOTH }, ...first.output, ...answers];
  assert.equal((await respond(input, { tools: TOOLS })).output_text, q.WARM_BOTH_ANSWER);
});

test("responses: tools round trip, streamed, by the previous response", async () => {
  const ask = (input, options) =>
    client()
      .responses.stream({ model: MODEL, input, tools: TOOLS, ...options })
      .finalResponse();
  const first = await ask(q.WARM);
  const second = await ask(outputs(first), { previous_response_id: first.id });
  assert.equal(second.output_text, q.WARM_ANSWER);
});

test("responses: reasoning", async () => {
  const reply = await respond(q.SUM, { reasoning: { effort: "medium" } });
  assert.deepEqual(
    reply.output.map((item) => item.type),
    ["reasoning", "message"],
  );
  assert.equal(reply.output_text, q.SUM_ANSWER);
});

test("responses: errors", async () => {
  await assert.rejects(respond(q.PLAIN, { model: "no/such" }), OpenAI.NotFoundError);
  await assert.rejects(respond(q.PLAIN, { temperature: -1 }), OpenAI.BadRequestError);
  await assert.rejects(respond(q.TOO_LONG, { stream: true }), OpenAI.BadRequestError);
});
