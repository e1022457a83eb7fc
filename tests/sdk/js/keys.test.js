// Each SDK tells a wrong key as its own error.

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";
import * as q from "./questions.js";
import { MODEL, played } from "./server.js";

const server = played("--api-key", "secret-key");
const request = { model: MODEL, messages: [{ role: "user", content: q.PLAIN }] };

test("openai", async () => {
  const ask = (apiKey) =>
    new OpenAI({ baseURL: `${server.url}/v1`, apiKey, maxRetries: 0 }).chat.completions.create(
      request,
    );
  await assert.rejects(ask("wrong"), OpenAI.AuthenticationError);
  assert.equal((await ask("secret-key")).choices[0].message.content, q.PLAIN_ANSWER);
});

test("@anthropic-ai/sdk", async () => {
  const ask = (credentials) =>
    new Anthropic({ baseURL: server.url, maxRetries: 0, ...credentials }).messages.create({
      max_tokens: 100,
      ...request,
    });
  await assert.rejects(ask({ apiKey: "wrong" }), Anthropic.AuthenticationError);
  for (const credentials of [
    { apiKey: "secret-key" },
    { apiKey: null, authToken: "secret-key" },
  ]) {
    assert.equal((await ask(credentials)).content[0].text, q.PLAIN_ANSWER);
  }
});

test("ollama", async () => {
  const ask = (key) =>
    new Ollama({ host: server.url, headers: { authorization: `Bearer ${key}` } }).chat(request);
  await assert.rejects(ask("wrong"), (error) => error.status_code === 401);
  assert.equal((await ask("secret-key")).message.content, q.PLAIN_ANSWER);
});
