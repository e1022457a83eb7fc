// Answers whose form is given, of a model that draws them.

import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import {
  APICallError,
  generateObject,
  generateText,
  jsonSchema,
  NoObjectGeneratedError,
  Output,
  streamObject,
  streamText,
  tool,
} from "ai";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { Pet, QUESTION, TEMPERATURES, Traits } from "./pets.js";
import { drawn, STARTER } from "./server.js";

const server = drawn();
const LIMIT = 400;
const MESSAGES = [{ role: "user", content: QUESTION }];

const openai = () =>
  new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused", maxRetries: 0 });
const ask = (options) => ({ model: STARTER, messages: MESSAGES, ...options });

// Decoding several answers at once costs hardly more than one.
suite("drawn", { concurrency: 4 }, () => {
  for (const temperature of TEMPERATURES) {
    test(`openai: chat at ${temperature}`, async () => {
      const reply = await openai().chat.completions.parse(
        ask({
          temperature,
          seed: 1,
          max_completion_tokens: LIMIT,
          response_format: zodResponseFormat(Pet, "pet"),
        }),
      );
      Pet.parse(reply.choices[0].message.parsed);
    });
  }

  test("openai: streamed chat", async () => {
    const stream = openai().chat.completions.stream(
      ask({ temperature: 1, seed: 2, response_format: zodResponseFormat(Pet, "pet") }),
    );
    const reply = await stream.finalChatCompletion();
    Pet.parse(reply.choices[0].message.parsed);
  });

  test("openai: a limit within the answer", async () => {
    await assert.rejects(
      openai().chat.completions.parse(
        ask({ max_completion_tokens: 5, response_format: zodResponseFormat(Pet, "pet") }),
      ),
      OpenAI.LengthFinishReasonError ?? /length/,
    );
  });

  test("openai: strict tool", async () => {
    const reply = await openai().chat.completions.parse(
      ask({
        temperature: 1,
        seed: 3,
        tools: [zodFunction({ name: "describe", parameters: Pet })],
        tool_choice: { type: "function", function: { name: "describe" } },
        parallel_tool_calls: false,
      }),
    );
    const [call] = reply.choices[0].message.tool_calls;
    Pet.parse(call.function.parsed_arguments);
  });

  test("openai: responses", async () => {
    const reply = await openai().responses.parse({
      model: STARTER,
      input: QUESTION,
      temperature: 1,
      text: { format: zodTextFormat(Pet, "pet") },
    });
    Pet.parse(reply.output_parsed);
  });

  const anthropic = () =>
    new Anthropic({ baseURL: server.url, apiKey: "unused", maxRetries: 0 });

  test("anthropic: parse", async () => {
    const reply = await anthropic().messages.parse(
      ask({ max_tokens: LIMIT, output_config: { format: zodOutputFormat(Traits) } }),
    );
    Traits.parse(reply.parsed_output);
  });

  for (const choice of [{ type: "any" }, { type: "tool", name: "describe" }]) {
    test(`anthropic: strict tool, ${choice.type}`, async () => {
      const stream = anthropic().messages.stream(
        ask({
          max_tokens: LIMIT,
          tools: [{ name: "describe", strict: true, input_schema: z.toJSONSchema(Pet) }],
          tool_choice: { ...choice, disable_parallel_tool_use: true },
        }),
      );
      const reply = await stream.finalMessage();
      assert.equal(reply.content.length, 1);
      Pet.parse(reply.content[0].input);
    });
  }

  for (const temperature of TEMPERATURES) {
    test(`ollama: format at ${temperature}`, async () => {
      const reply = await new Ollama({ host: server.url }).chat(
        ask({
          format: z.toJSONSchema(Pet),
          options: { temperature, seed: 4, num_predict: LIMIT },
        }),
      );
      Pet.parse(JSON.parse(reply.message.content));
    });
  }

  const vercel = () => createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "unused" });
  const PROVIDERS = {
    "openai chat": [() => vercel().chat(STARTER), Pet],
    "openai responses": [() => vercel().responses(STARTER), Pet],
    "openai-compatible": [
      () =>
        createOpenAICompatible({
          name: "macmlx",
          baseURL: `${server.url}/v1`,
          apiKey: "unused",
          supportsStructuredOutputs: true,
        })(STARTER),
      Pet,
    ],
    anthropic: [
      () => createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "unused" })(STARTER),
      Traits,
    ],
  };

  for (const [name, [model, schema]] of Object.entries(PROVIDERS)) {
    const request = (options) => ({
      model: model(),
      prompt: QUESTION,
      maxRetries: 0,
      maxOutputTokens: LIMIT,
      temperature: 1,
      ...options,
    });

    test(`ai, ${name}: generateObject`, async () => {
      schema.parse((await generateObject(request({ schema }))).object);
    });

    test(`ai, ${name}: streamObject`, async () => {
      const result = streamObject(request({ schema }));
      const parts = await Array.fromAsync(result.partialObjectStream);
      assert.ok(parts.length > 1);
      schema.parse(await result.object);
    });

    test(`ai, ${name}: output of generateText and streamText`, async () => {
      const output = () => Output.object({ schema });
      schema.parse((await generateText(request({ output: output() }))).output);
      schema.parse(await streamText(request({ output: output() })).output);
    });

    for (const toolChoice of ["required", { type: "tool", toolName: "describe" }]) {
      test(`ai, ${name}: forced tool, ${toolChoice.type ?? toolChoice}`, async () => {
        const describe = tool({ inputSchema: schema });
        const options = { tools: { describe }, toolChoice };
        const result = await generateText(request(options));
        assert.ok(result.toolCalls.length > 0);
        schema.parse(result.toolCalls[0].input);
      });
    }
  }

  test("ai: a choice", async () => {
    const output = Output.choice({ options: ["cat", "dog"] });
    const result = await generateText({ model: vercel().chat(STARTER), prompt: QUESTION, output });
    assert.ok(["cat", "dog"].includes(result.output));
  });

  test("ai: any JSON object of a provider that loses the schema", async () => {
    const provider = createOpenAICompatible({
      name: "macmlx",
      baseURL: `${server.url}/v1`,
      apiKey: "unused",
    });
    const request = {
      model: provider(STARTER),
      prompt: QUESTION,
      maxOutputTokens: 60,
      maxRetries: 0,
      output: Output.json(),
    };
    // Any object at all may be longer than there is room for, which the SDK takes for an error.
    const { text, finishReason } = await generateText(request).catch((error) => {
      assert.ok(NoObjectGeneratedError.isInstance(error), error);
      return error;
    });
    if (finishReason === "stop") assert.equal(typeof JSON.parse(text), "object");
    else assert.equal(finishReason, "length");
    assert.ok(text.startsWith("{"));
  });

  test("ai: what cannot be enforced is refused by name", async () => {
    const [model] = PROVIDERS["openai-compatible"];
    const schema = jsonSchema({
      type: "object",
      properties: { a: { type: "array", uniqueItems: true } },
    });
    await assert.rejects(
      generateObject({ model: model(), prompt: QUESTION, maxRetries: 0, schema }),
      (error) => {
        assert.ok(APICallError.isInstance(error), error);
        assert.equal(error.statusCode, 400);
        assert.match(error.message, /response_format\.json_schema\.schema.*uniqueItems/);
        return true;
      },
    );
  });
});
