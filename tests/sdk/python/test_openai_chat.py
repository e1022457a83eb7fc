"""`openai`: chat completions and completions."""

import json

import openai
import pytest
from harness import questions as q
from harness.playback import MODEL

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Get the temperature in a city.",
            "parameters": q.WEATHER_SCHEMA,
        },
    }
]


def user(text):
    return [{"role": "user", "content": text}]


@pytest.fixture(scope="module")
def client(openai_url):
    return openai.OpenAI(base_url=openai_url, api_key="unused", max_retries=0, timeout=60)


def test_plain(client):
    reply = client.chat.completions.create(model=MODEL, messages=user(q.PLAIN))
    choice = reply.choices[0]
    assert choice.message.content == q.PLAIN_ANSWER
    assert choice.message.tool_calls is None
    assert choice.finish_reason == "stop"
    assert reply.model == MODEL
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_stream(client):
    chunks = list(
        client.chat.completions.create(
            model=MODEL,
            messages=user(q.PLAIN),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    pieces = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert "".join(pieces) == q.PLAIN_ANSWER
    assert len(pieces) > 3
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage.completion_tokens >= len(pieces)


def test_stream_helper_collects_the_whole_completion(client):
    with client.chat.completions.stream(model=MODEL, messages=user(q.PLAIN)) as stream:
        events = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in events and "content.done" in events
    assert final.choices[0].message.content == q.PLAIN_ANSWER


def test_a_gap_is_filled(client):
    gap = {"model": MODEL, "prompt": "Once upon", "suffix": "The end."}
    reply = client.completions.create(**gap)
    assert reply.choices[0].text == " a time there was a king."
    echoed = client.completions.create(**gap, echo=True, n=2)
    assert [c.text for c in echoed.choices] == ["Once upon a time there was a king."] * 2
    pieces = client.completions.create(**gap, stream=True)
    assert "".join(piece.choices[0].text for piece in pieces) == " a time there was a king."


async def test_async_stream(openai_url):
    async with openai.AsyncOpenAI(base_url=openai_url, api_key="unused", max_retries=0) as client:
        stream = await client.chat.completions.create(
            model=MODEL, messages=user(q.PLAIN), stream=True
        )
        text = "".join([c.choices[0].delta.content or "" async for c in stream])
    assert text == q.PLAIN_ANSWER


def call_weather(messages, message):
    """Answers the calls of an assistant turn as an agent does."""
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        assert call.type == "function"
        assert call.function.name == "weather"
        result = q.weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def test_tools_round_trip(client):
    messages = user(q.WARM_BOTH)
    reply = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    assert reply.choices[0].finish_reason == "tool_calls"
    calls = reply.choices[0].message.tool_calls
    assert len({call.id for call in calls}) == 2
    call_weather(messages, reply.choices[0].message)
    reply = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    assert reply.choices[0].message.content == q.WARM_BOTH_ANSWER
    assert reply.choices[0].finish_reason == "stop"


def test_streamed_tools_round_trip(client):
    messages = user(q.WARM)
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "tool_calls.function.arguments.done" in kinds
    assert final.choices[0].finish_reason == "tool_calls"
    message = final.choices[0].message
    messages.append(
        {
            "role": "assistant",
            "content": message.content,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in message.tool_calls
            ],
        }
    )
    for call in message.tool_calls:
        result = q.weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == q.WARM_ANSWER


def test_one_call_when_parallel_calls_are_off(client):
    reply = client.chat.completions.create(
        model=MODEL, messages=user(q.WARM_BOTH), tools=TOOLS, parallel_tool_calls=False
    )
    assert len(reply.choices[0].message.tool_calls) == 1
    assert reply.choices[0].finish_reason == "tool_calls"


def test_no_call_when_tools_are_off(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model=MODEL, messages=user(q.WARM), tools=TOOLS, tool_choice="none"
        )
    # The script has an answer to this only where the tool is offered.
    assert "tools: []" in caught.value.body["message"]


def test_reasoning(client):
    reply = client.chat.completions.create(model=MODEL, messages=user(q.SUM))
    message = reply.choices[0].message
    assert message.content == q.SUM_ANSWER
    assert message.model_extra["reasoning_content"].strip() == q.SUM_REASONING
    assert reply.usage.completion_tokens_details.reasoning_tokens > 10


def test_reasoning_stream(client):
    chunks = client.chat.completions.create(model=MODEL, messages=user(q.SUM), stream=True)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    thought = [(d.model_extra or {}).get("reasoning_content") or "" for d in deltas]
    said = [d.content or "" for d in deltas]
    assert "".join(thought).strip() == q.SUM_REASONING
    assert "".join(said) == q.SUM_ANSWER


@pytest.mark.parametrize(
    "off",
    [
        {"reasoning_effort": "none"},
        {"extra_body": {"enable_thinking": False}},
        {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}},
    ],
)
def test_reasoning_switched_off(client, off):
    reply = client.chat.completions.create(model=MODEL, messages=user(q.SUM), **off)
    message = reply.choices[0].message
    assert message.content == q.SUM_ANSWER
    assert not (message.model_extra or {}).get("reasoning_content")
    assert reply.usage.completion_tokens_details.reasoning_tokens == 0


def test_reasoning_budget(client):
    reply = client.chat.completions.create(
        model=MODEL, messages=user(q.SUM), extra_body={"thinking_budget": 4}
    )
    message = reply.choices[0].message
    assert message.content == q.SUM_ANSWER
    assert message.model_extra["reasoning_content"].strip() in q.SUM_REASONING
    assert message.model_extra["reasoning_content"].strip() != q.SUM_REASONING


def test_choices(client):
    reply = client.chat.completions.create(model=MODEL, messages=user(q.NAMES), n=3)
    said = {choice.index: choice.message.content for choice in reply.choices}
    assert said == {0: "Smaug", 1: "Fafnir", 2: "Glaurung"}


def test_limits_and_stop_sequences(client):
    cut = client.chat.completions.create(
        model=MODEL, messages=user(q.PLAIN), max_completion_tokens=3
    )
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage.completion_tokens == 3
    assert q.PLAIN_ANSWER.startswith(cut.choices[0].message.content)
    stopped = client.chat.completions.create(
        model=MODEL, messages=user(q.PLAIN), stop=["ance is"]
    )
    assert stopped.choices[0].message.content == "The capital of Fr"
    assert stopped.choices[0].finish_reason == "stop"


def test_logprobs(client):
    reply = client.chat.completions.create(
        model=MODEL, messages=user(q.PLAIN), logprobs=True, top_logprobs=2
    )
    entries = reply.choices[0].logprobs.content
    assert "".join(entry.token for entry in entries) == q.PLAIN_ANSWER
    assert all(len(entry.top_logprobs) == 2 for entry in entries)


def test_the_next_turn_finds_the_last_one_cached(client):
    messages = user(q.PLAIN)
    first = client.chat.completions.create(model=MODEL, messages=messages)
    messages.append({"role": "assistant", "content": first.choices[0].message.content})
    messages += user(q.SUM)
    second = client.chat.completions.create(model=MODEL, messages=messages)
    cached = second.usage.prompt_tokens_details.cached_tokens
    # All of the first exchange but the markers that end it.
    assert cached >= first.usage.prompt_tokens + first.usage.completion_tokens - 2


def test_completion(client):
    reply = client.completions.create(model=MODEL, prompt="Once upon")
    assert reply.choices[0].text == " a time there was a king."
    pieces = client.completions.create(model=MODEL, prompt="Once upon", stream=True)
    assert "".join(p.choices[0].text for p in pieces if p.choices) == " a time there was a king."


def test_models(client):
    assert MODEL in [model.id for model in client.models.list()]
    assert client.models.retrieve(MODEL).id == MODEL


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="no/such", messages=user(q.PLAIN))
    assert caught.value.code == "model_not_found"
    assert "no/such" in caught.value.body["message"]


def test_bad_value(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=user(q.PLAIN), temperature=-1)
    assert caught.value.param == "temperature"
    assert caught.value.type == "invalid_request_error"


@pytest.mark.parametrize("stream", [False, True])
def test_context_length(client, stream):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=user(q.TOO_LONG), stream=stream)
    assert caught.value.code == "context_length_exceeded"
    assert "context" in caught.value.body["message"]


def test_busy(client):
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model=MODEL, messages=user(q.BUSY))
    assert caught.value.status_code in (429, 503)
    assert "busy" in caught.value.body["message"]


def test_error_in_the_middle_of_a_stream(client):
    said = []
    with pytest.raises(openai.APIError, match="breaks off") as caught:
        for chunk in client.chat.completions.create(
            model=MODEL, messages=user(q.BREAK_OFF), stream=True
        ):
            said.append(chunk.choices[0].delta.content or "")
    assert not isinstance(caught.value, openai.APIConnectionError)
    assert "".join(said).startswith("These are")


def test_wrong_key(guarded_server):
    def client(key):
        return openai.OpenAI(base_url=f"{guarded_server.url}/v1", api_key=key, max_retries=0)

    with pytest.raises(openai.AuthenticationError) as caught:
        client("wrong").chat.completions.create(model=MODEL, messages=user(q.PLAIN))
    assert caught.value.code == "invalid_api_key"
    reply = client("secret-key").chat.completions.create(model=MODEL, messages=user(q.PLAIN))
    assert reply.choices[0].message.content == q.PLAIN_ANSWER
