"""Every reply and every frame as bytes, held against the types that the official SDKs publish."""

import json
import re

import ollama
import pytest
from anthropic.types import (
    ErrorResponse,
    Message,
    MessageTokensCount,
    ModelInfo,
    RawMessageStreamEvent,
)
from harness import questions as q
from harness.http import raw
from harness.playback import MODEL
from openai.types import Completion, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

CHAT_TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": q.WEATHER_SCHEMA},
}
QUESTIONS = {
    "plain": (q.PLAIN, {}),
    "tools": (q.WARM_BOTH, "tools"),
    "reasoning": (q.SUM, "reasoning"),
    "cut": (q.SUM, "cut"),
}
EACH = pytest.mark.parametrize("question", QUESTIONS)


def post(server, path, body):
    status, headers, text = raw(server, "POST", path, json.dumps(body).encode())
    assert status == 200, text
    return headers["content-type"], text.decode()


def get(server, path, headers=None):
    status, _, text = raw(server, "GET", path, headers=headers)
    assert status == 200, text
    return text


def frames(text):
    """Name and data of each event of a stream; data is checked to be JSON but for the end mark."""
    for frame in text.strip().split("\n\n"):
        lines = [line for line in frame.split("\n") if not line.startswith(":")]
        fields = dict(line.split(": ", 1) for line in lines)
        if fields:
            assert set(fields) <= {"event", "data"}, frame
            yield fields.get("event"), fields["data"]


def check(kind, text):
    """Strictly: no string where a number belongs."""
    return TypeAdapter(kind).validate_json(text, strict=True)


def chat_body(question):
    text, extra = QUESTIONS[question]
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": text}],
        **(
            {
                "tools": {"tools": [CHAT_TOOL]},
                "reasoning": {"logprobs": True, "top_logprobs": 2},
                "cut": {"max_tokens": 9},
            }.get(extra or "", {})
        ),
    }


@EACH
def test_chat_completion(server, question):
    _, text = post(server, "/v1/chat/completions", chat_body(question))
    reply = check(ChatCompletion, text)
    assert reply.usage.completion_tokens_details is not None
    assert reply.usage.prompt_tokens_details is not None


@EACH
def test_chat_completion_stream(server, question):
    body = chat_body(question) | {"stream": True, "stream_options": {"include_usage": True}}
    kind, text = post(server, "/v1/chat/completions", body)
    assert kind.startswith("text/event-stream")
    *events, (_, end) = frames(text)
    assert end == "[DONE]"
    chunks = [check(ChatCompletionChunk, data) for _, data in events]
    assert chunks[0].choices[0].delta.role == "assistant"
    finishes = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert len([finish for finish in finishes if finish]) == 1
    assert chunks[-1].usage.completion_tokens > 0


@pytest.mark.parametrize("extra", [{}, {"logprobs": 2}, {"logprobs": 1, "echo": True}])
def test_completion(server, extra):
    body = {"model": MODEL, "prompt": "Once upon", **extra}
    check_completion(json.loads(post(server, "/v1/completions", body)[1]))
    *events, (_, end) = frames(post(server, "/v1/completions", body | {"stream": True})[1])
    assert end == "[DONE]"
    pieces = [json.loads(data) for _, data in events]
    finishes = [choice["finish_reason"] for piece in pieces for choice in piece["choices"]]
    assert finishes == [None] * (len(finishes) - 1) + ["stop"]
    for piece in pieces:
        check_completion(piece)


def check_completion(reply):
    """The types know neither pieces, of which only the last says why it ended, nor that nothing
    precedes the first token of an echoed prompt."""
    for choice in reply["choices"]:
        choice["finish_reason"] = choice["finish_reason"] or "stop"
        logprobs = choice["logprobs"] or {}
        if logprobs.get("token_logprobs", [0])[:1] == [None]:
            logprobs["token_logprobs"][0] = 0.0
            logprobs["top_logprobs"][0] = {}
    check(Completion, json.dumps(reply))


def response_body(question):
    text, extra = QUESTIONS[question]
    tool = {
        "type": "function",
        "name": "weather",
        "parameters": q.WEATHER_SCHEMA,
        "strict": False,
    }
    return {
        "model": MODEL,
        "input": text,
        **(
            {
                "tools": {"tools": [tool]},
                "reasoning": {
                    "include": ["reasoning.encrypted_content"],
                    "reasoning": {"effort": "medium", "summary": "auto"},
                },
                "cut": {"max_output_tokens": 9},
            }.get(extra or "", {})
        ),
    }


@EACH
def test_response(server, question):
    check(Response, post(server, "/v1/responses", response_body(question))[1])


@EACH
def test_response_stream(server, question):
    kind, text = post(server, "/v1/responses", response_body(question) | {"stream": True})
    assert kind.startswith("text/event-stream")
    last = None
    for name, data in frames(text):
        event = check(ResponseStreamEvent, data)
        assert event.type == name
        last = name
    assert last == ("response.incomplete" if question == "cut" else "response.completed")


def message_body(question):
    text, extra = QUESTIONS[question]
    return {
        "model": MODEL,
        "max_tokens": 2000,
        "messages": [{"role": "user", "content": text}],
        **(
            {
                "tools": {"tools": [{"name": "weather", "input_schema": q.WEATHER_SCHEMA}]},
                "reasoning": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
                "cut": {
                    "max_tokens": 9,
                    "thinking": {"type": "enabled", "budget_tokens": 1024},
                },
            }.get(extra or "", {})
        ),
    }


@EACH
def test_message(server, question):
    check(Message, post(server, "/v1/messages", message_body(question))[1])


@EACH
def test_message_stream(server, question):
    kind, text = post(server, "/v1/messages", message_body(question) | {"stream": True})
    assert kind.startswith("text/event-stream")
    open_blocks = []
    for name, data in frames(text):
        if name == "ping":
            assert json.loads(data) == {"type": "ping"}
            continue
        event = check(RawMessageStreamEvent, data)
        assert event.type == name
        if name == "content_block_start":
            assert not open_blocks
            open_blocks.append(event.index)
        if name == "content_block_stop":
            assert open_blocks.pop() == event.index
    assert name == "message_stop"
    assert not open_blocks


def test_token_count(server):
    body = message_body("tools")
    del body["max_tokens"]
    check(MessageTokensCount, post(server, "/v1/messages/count_tokens", body)[1])


def test_model_lists(server):
    listed = json.loads(get(server, "/v1/models"))
    assert listed["object"] == "list"
    for model in listed["data"]:
        check(Model, json.dumps(model))
    check(Model, get(server, f"/v1/models/{MODEL}"))

    version = {"anthropic-version": "2023-06-01"}
    for path, headers in [("/v1/models", version), ("/anthropic/v1/models", None)]:
        listed = json.loads(get(server, path, headers))
        assert set(listed) >= {"data", "first_id", "last_id", "has_more"}
        for model in listed["data"]:
            check(ModelInfo, json.dumps(model))
    check(ModelInfo, get(server, f"/anthropic/v1/models/{MODEL}"))


def test_anthropic_error(server):
    status, headers, text = raw(
        server, "POST", "/v1/messages", json.dumps(message_body("plain") | {"model": "no/such"}).encode()
    )
    assert status == 404
    assert check(ErrorResponse, text).error.type == "not_found_error"
    assert headers["request-id"]


def ollama_body(question):
    text, extra = QUESTIONS[question]
    return {
        "model": MODEL,
        "messages": [{"role": "user", "content": text}],
        **(
            {
                "tools": {"tools": [CHAT_TOOL]},
                "reasoning": {"think": True},
                "cut": {"options": {"num_predict": 9}},
            }.get(extra or "", {})
        ),
    }


# Pydantic's strictness knows no times in text, so these are checked as the client does.
def check_ollama(kind, text):
    return TypeAdapter(kind).validate_json(text)


@EACH
def test_ollama_chat(server, question):
    kind, text = post(server, "/api/chat", ollama_body(question) | {"stream": False})
    assert kind.startswith("application/json")
    reply = check_ollama(ollama.ChatResponse, text)
    assert reply.done
    assert reply.done_reason == ("length" if question == "cut" else "stop")
    kind, text = post(server, "/api/chat", ollama_body(question))
    assert kind.startswith("application/x-ndjson")
    parts = [check_ollama(ollama.ChatResponse, line) for line in text.splitlines()]
    assert [part.done for part in parts][-1] is True
    assert all(re.match(r"\d{4}-\d\d-\d\dT", part.created_at) for part in parts)


def test_ollama_generate(server):
    body = {"model": MODEL, "prompt": q.PLAIN}
    text = post(server, "/api/generate", body | {"stream": False})[1]
    assert check_ollama(ollama.GenerateResponse, text).response == q.PLAIN_ANSWER
    for line in post(server, "/api/generate", body)[1].splitlines():
        check_ollama(ollama.GenerateResponse, line)


def test_ollama_models(server):
    check_ollama(ollama.ListResponse, get(server, "/api/tags"))
    check_ollama(ollama.ProcessResponse, get(server, "/api/ps"))
    for name in ("model", "name"):
        check_ollama(ollama.ShowResponse, post(server, "/api/show", {name: MODEL})[1])
