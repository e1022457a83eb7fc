// Embeddings by a real model, through `openai`, the AI SDK's providers and `ollama`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { cosineSimilarity, embed, embedMany } from "ai";
import { Ollama } from "ollama";
import { createOllama } from "ollama-ai-provider-v2";
import OpenAI from "openai";
import { EMBEDDER, encoding, RERANKER } from "./server.js";

const server = encoding();

const TEXTS = [
  "A cat sleeps on the sofa.",
  "The kitten is napping on the couch.",
  "Stock markets fell sharply today.",
];
const FEATURES = 384;

/** Vectors of the texts are of length 1 and lie as their texts do. */
function meanTheRightThing([cat, kitten, stocks]) {
  for (const vector of [cat, kitten, stocks]) {
    const length = Math.hypot(...vector);
    assert.ok(Math.abs(length - 1) < 1e-4, `${length}`);
  }
  assert.ok(cosineSimilarity(cat, kitten) > 0.6);
  assert.ok(cosineSimilarity(cat, kitten) > cosineSimilarity(cat, stocks) + 0.2);
}

const client = () =>
  new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused", maxRetries: 0 });

test("openai: bytes and numbers agree", async () => {
  // Unless told otherwise, the SDK asks for base64.
  const fromBytes = await client().embeddings.create({ model: EMBEDDER, input: TEXTS });
  meanTheRightThing(fromBytes.data.map((data) => data.embedding));
  assert.ok(fromBytes.usage.prompt_tokens > 15);
  const numbers = await client().embeddings.create({
    model: EMBEDDER,
    input: TEXTS,
    encoding_format: "float",
  });
  for (const [index, { embedding }] of numbers.data.entries()) {
    assert.equal(embedding.length, FEATURES);
    assert.deepEqual(embedding.map(Math.fround), fromBytes.data[index].embedding.map(Math.fround));
  }
});

test("openai: what cannot be had is named", async () => {
  for (const [options, param] of [
    [{ dimensions: FEATURES + 1 }, "dimensions"],
    [{ input: [] }, "input"],
    [{ model: RERANKER }, "model"],
  ]) {
    await assert.rejects(
      client().embeddings.create({ model: EMBEDDER, input: "a", ...options }),
      (error) => error instanceof OpenAI.BadRequestError && error.param === param,
    );
  }
});

const PROVIDERS = {
  openai: () =>
    createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused" }).embeddingModel(EMBEDDER),
  "openai-compatible": () =>
    createOpenAICompatible({
      name: "macmlx",
      baseURL: `${server.url}/v1`,
      apiKey: "unused",
    }).embeddingModel(EMBEDDER),
  ollama: () => createOllama({ baseURL: `${server.url}/api` }).embeddingModel(EMBEDDER),
};

for (const [name, make] of Object.entries(PROVIDERS)) {
  test(`AI SDK, ${name}: one and many`, async () => {
    const many = await embedMany({ model: make(), values: TEXTS, maxRetries: 0 });
    meanTheRightThing(many.embeddings);
    const one = await embed({ model: make(), value: TEXTS[0], maxRetries: 0 });
    assert.equal(one.embedding.length, FEATURES);
    assert.ok(cosineSimilarity(one.embedding, many.embeddings[0]) > 0.9999);
    assert.ok(one.usage.tokens > 5);
  });
}

test("ollama", async () => {
  const ollama = new Ollama({ host: server.url });
  const reply = await ollama.embed({ model: EMBEDDER, input: TEXTS });
  meanTheRightThing(reply.embeddings);
  assert.ok(reply.prompt_eval_count > 15);
  const old = await ollama.embeddings({ model: EMBEDDER, prompt: TEXTS[0] });
  assert.ok(cosineSimilarity(old.embedding, reply.embeddings[0]) > 0.9999);
  assert.deepEqual((await ollama.show({ model: EMBEDDER })).capabilities, ["embedding"]);
});
