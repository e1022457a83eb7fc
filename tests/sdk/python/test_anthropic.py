"""`anthropic`: messages, token counts and models."""

import anthropic
import pytest
from harness import questions as q
from harness.playback import MODEL

TOOLS = [
    {
        "name": "weather",
        "description": "Get the temperature in a city.",
        "input_schema": q.WEATHER_SCHEMA,
    }
]
THINKING = {"type": "enabled", "budget_tokens": 1024}


def user(text):
    return [{"role": "user", "content": text}]


@pytest.fixture(scope="module", params=["", "/anthropic"], ids=["root", "anthropic"])
def client(server, request):
    return anthropic.Anthropic(
        base_url=server.url + request.param, api_key="unused", max_retries=0, timeout=60
    )


def create(client, text, **options):
    return client.messages.create(
        **{"model": MODEL, "max_tokens": 2000, "messages": user(text)} | options
    )


def test_plain(client):
    reply = create(client, q.PLAIN)
    assert [block.type for block in reply.content] == ["text"]
    assert reply.content[0].text == q.PLAIN_ANSWER
    assert reply.stop_reason == "end_turn"
    assert reply.role == "assistant"
    assert reply.model == MODEL
    assert reply.usage.input_tokens + reply.usage.cache_read_input_tokens > 5


def test_stream(client):
    with client.messages.stream(
        model=MODEL, max_tokens=2000, messages=user(q.PLAIN), system="Be kind."
    ) as stream:
        pieces = list(stream.text_stream)
        final = stream.get_final_message()
    assert "".join(pieces) == q.PLAIN_ANSWER
    assert len(pieces) > 3
    assert final.stop_reason == "end_turn"
    assert final.usage.output_tokens >= len(pieces)


def test_events_come_in_the_documented_order(client):
    events = [
        event.type
        for event in create(client, q.PLAIN, stream=True)
        if event.type != "content_block_delta"
    ]
    events = [event for event in events if event != "ping"]
    assert events == [
        "message_start",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


async def test_async_stream(server):
    async with anthropic.AsyncAnthropic(
        base_url=server.url, api_key="unused", max_retries=0
    ) as client:
        async with client.messages.stream(
            model=MODEL, max_tokens=2000, messages=user(q.PLAIN)
        ) as stream:
            text = "".join([piece async for piece in stream.text_stream])
    assert text == q.PLAIN_ANSWER


def results(message):
    calls = [block for block in message.content if block.type == "tool_use"]
    assert all(call.name == "weather" for call in calls)
    return [
        {"type": "tool_result", "tool_use_id": call.id, "content": q.weather(**call.input)}
        for call in calls
    ]


def test_tools_round_trip(client):
    first = create(client, q.WARM_BOTH, tools=TOOLS)
    assert first.stop_reason == "tool_use"
    answers = results(first)
    assert len(answers) == 2
    messages = [
        *user(q.WARM_BOTH),
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": answers},
    ]
    second = create(client, "", messages=messages, tools=TOOLS)
    assert second.content[0].text == q.WARM_BOTH_ANSWER
    assert second.stop_reason == "end_turn"


def test_streamed_tools_round_trip(client):
    with client.messages.stream(
        model=MODEL, max_tokens=2000, messages=user(q.WARM), tools=TOOLS
    ) as stream:
        partial = [event.partial_json for event in stream if event.type == "input_json"]
        first = stream.get_final_message()
    assert partial
    assert first.stop_reason == "tool_use"
    messages = [
        *user(q.WARM),
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": results(first)},
    ]
    with client.messages.stream(
        model=MODEL, max_tokens=2000, messages=messages, tools=TOOLS
    ) as stream:
        assert stream.get_final_text() == q.WARM_ANSWER


def test_tool_runner_calls_a_function(client):
    calls = []

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """Get the temperature in a city.

        Args:
            city: Name of the city.
        """
        calls.append(city)
        return q.weather(city)

    runner = client.beta.messages.tool_runner(
        model=MODEL, max_tokens=2000, messages=user(q.WARM), tools=[weather]
    )
    assert runner.until_done().content[0].text == q.WARM_ANSWER
    assert calls == ["Paris"]


def test_one_call_when_parallel_calls_are_off(client):
    reply = create(
        client,
        q.WARM_BOTH,
        tools=TOOLS,
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
    )
    assert [block.type for block in reply.content].count("tool_use") == 1
    assert reply.stop_reason == "tool_use"


def test_reasoning(client):
    reply = create(client, q.SUM, thinking=THINKING)
    thinking, text = reply.content
    assert thinking.type == "thinking"
    assert thinking.thinking.strip() == q.SUM_REASONING
    assert thinking.signature
    assert text.text == q.SUM_ANSWER


def test_reasoning_stream(client):
    with client.messages.stream(
        model=MODEL, max_tokens=2000, messages=user(q.SUM), thinking=THINKING
    ) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_message()
    assert {"thinking", "signature", "text"} <= kinds
    assert final.content[0].thinking.strip() == q.SUM_REASONING
    assert final.content[1].text == q.SUM_ANSWER


def test_no_thinking_unless_asked_for(client):
    reply = create(client, q.SUM)
    assert [block.type for block in reply.content] == ["text"]
    assert reply.content[0].text == q.SUM_ANSWER


def test_thinking_can_be_replayed(client):
    first = create(client, q.SUM, thinking=THINKING)
    messages = [
        *user(q.SUM),
        {"role": "assistant", "content": first.content},
        *user(q.PLAIN),
    ]
    assert create(client, "", messages=messages, thinking=THINKING).content[-1].text == (
        q.PLAIN_ANSWER
    )


def test_limits_and_stop_sequences(client):
    cut = create(client, q.PLAIN, max_tokens=3)
    assert cut.stop_reason == "max_tokens"
    assert cut.usage.output_tokens == 3
    stopped = create(client, q.PLAIN, stop_sequences=["ance is"])
    assert stopped.stop_reason == "stop_sequence"
    assert stopped.stop_sequence == "ance is"
    assert stopped.content[0].text == "The capital of Fr"


def test_usage_tells_what_was_cached(client):
    system = "Answer each question about geography in one short sentence. " * 5
    create(client, q.PLAIN, system=system)
    again = create(client, q.PLAIN, system=system)
    assert again.usage.cache_read_input_tokens > 20
    assert again.usage.input_tokens >= 1


def test_token_count_is_that_of_the_message(client):
    counted = client.messages.count_tokens(
        model=MODEL, messages=user(q.WARM), system="Be kind.", tools=TOOLS
    )
    usage = create(client, q.WARM, system="Be kind.", tools=TOOLS).usage
    total = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    assert counted.input_tokens == total


def test_models(client):
    listed = list(client.models.list(limit=1))
    assert MODEL in [model.id for model in listed]
    assert client.models.retrieve(MODEL).id == MODEL


def test_unknown_model(client):
    with pytest.raises(anthropic.NotFoundError) as caught:
        create(client, q.PLAIN, model="no/such")
    error = caught.value.body
    assert error["type"] == "error"
    assert error["error"]["type"] == "not_found_error"
    assert "no/such" in error["error"]["message"]
    assert caught.value.request_id


def test_bad_value(client):
    with pytest.raises(anthropic.BadRequestError) as caught:
        create(client, q.PLAIN, extra_body={"temperature": -1})
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert "temperature" in caught.value.body["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_context_length(client, stream):
    with pytest.raises(anthropic.BadRequestError) as caught:
        create(client, q.TOO_LONG, stream=stream)
    assert "prompt is too long" in caught.value.body["error"]["message"]


def test_busy(client):
    with pytest.raises(anthropic.APIStatusError) as caught:
        create(client, q.BUSY)
    assert caught.value.status_code == 529
    assert caught.value.body["error"]["type"] == "overloaded_error"


def test_error_in_the_middle_of_a_stream(client):
    said = []
    with pytest.raises(anthropic.APIStatusError, match="breaks off"):
        for event in create(client, q.BREAK_OFF, stream=True):
            if event.type == "content_block_delta":
                said.append(event.delta.text)
    assert "".join(said).startswith("These are")


@pytest.mark.parametrize("header", ["api_key", "auth_token"])
def test_wrong_key(guarded_server, header):
    def client(key):
        return anthropic.Anthropic(base_url=guarded_server.url, max_retries=0, **{header: key})

    with pytest.raises(anthropic.AuthenticationError) as caught:
        create(client("wrong"), q.PLAIN)
    assert caught.value.body["error"]["type"] == "authentication_error"
    assert create(client("secret-key"), q.PLAIN).content[0].text == q.PLAIN_ANSWER
