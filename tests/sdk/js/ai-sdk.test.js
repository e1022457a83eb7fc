// The AI SDK, which validates most strictly, with each provider that speaks a dialect of ours.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import * as q from "./questions.js";
import { MODEL, played } from "./server.js";

const server = played();
const openai = () => createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused" });
const PROVIDERS = {
  "openai chat": (id) => openai().chat(id),
  "openai responses": (id) => openai().responses(id),
  "openai-compatible": (id) =>
    createOpenAICompatible({
      name: "macmlx",
      baseURL: `${server.url}/v1`,
      apiKey: "unused",
      includeUsage: true,
    })(id),
  anthropic: (id) => createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "unused" })(id),
};

/** What each provider is told so that it shows reasoning; OpenAI's chat has no place for it. */
const REASONING = {
  "openai responses": { openai: { forceReasoning: true, reasoningEffort: "medium" } },
  "openai-compatible": {},
  anthropic: { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } },
};

for (const [name, make] of Object.entries(PROVIDERS)) {
  const request = (prompt, options = {}) => ({
    model: make(options.id ?? MODEL),
    prompt,
    maxRetries: 0,
    ...options,
  });

  test(`${name}: plain`, async () => {
    const result = await generateText(request(q.PLAIN));
    assert.equal(result.text, q.PLAIN_ANSWER);
    assert.equal(result.finishReason, "stop");
    assert.ok(result.usage.outputTokens > 5);
  });

  test(`${name}: stream`, async () => {
    const errors = [];
    const result = streamText(request(q.PLAIN, { onError: ({ error }) => errors.push(error) }));
    const pieces = await Array.fromAsync(result.textStream);
    assert.deepEqual(errors, []);
    assert.equal(pieces.join(""), q.PLAIN_ANSWER);
    assert.ok(pieces.length > 3);
    assert.equal(await result.finishReason, "stop");
    assert.ok((await result.usage).inputTokens > 5);
  });

  for (const streamed of [false, true]) {
    test(`${name}: tools round trip, ${streamed ? "streamed" : "whole"}`, async () => {
      const cities = [];
      const options = request(q.WARM_BOTH, {
        stopWhen: stepCountIs(3),
        tools: {
          weather: tool({
            description: "Get the temperature in a city.",
            inputSchema: z.object({ city: z.string() }),
            execute: (input) => {
              cities.push(input.city);
              return q.weather(input);
            },
          }),
        },
      });
      const result = streamed ? streamText(options) : await generateText(options);
      assert.equal(await result.text, q.WARM_BOTH_ANSWER);
      assert.deepEqual(cities.sort(), ["Oslo", "Paris"]);
    });
  }

  if (name in REASONING) {
    for (const streamed of [false, true]) {
      test(`${name}: reasoning, ${streamed ? "streamed" : "whole"}`, async () => {
        const options = request(q.SUM, { providerOptions: REASONING[name] });
        const result = streamed ? streamText(options) : await generateText(options);
        assert.equal(await result.text, q.SUM_ANSWER);
        assert.equal((await result.reasoningText).trim(), q.SUM_REASONING);
      });
    }
  }

  test(`${name}: errors`, async () => {
    const rejects = (prompt, options, status, words) =>
      assert.rejects(generateText(request(prompt, options)), (error) => {
        assert.ok(APICallError.isInstance(error), error);
        assert.equal(error.statusCode, status);
        assert.match(error.message, words);
        return true;
      });
    await rejects(q.PLAIN, { id: "no/such" }, 404, /no\/such/);
    await rejects(q.TOO_LONG, {}, 400, /context|too long/);
  });

  test(`${name}: an error in the middle of a stream`, async () => {
    const errors = [];
    const result = streamText(
      request(q.BREAK_OFF, { onError: ({ error }) => errors.push(error) }),
    );
    await result.consumeStream({ onError: () => {} });
    assert.equal(errors.length, 1);
    assert.match(JSON.stringify(errors[0]) + errors[0].message, /breaks off/);
  });
}
