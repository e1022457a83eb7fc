"""LangChain's chat models for OpenAI (both APIs), Anthropic and Ollama."""

import pytest
from harness import questions as q
from harness.playback import MODEL
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI


@tool
def weather(city: str) -> str:
    """Get the temperature in a city."""
    return q.weather(city)


def openai_chat(url, **options):
    return ChatOpenAI(
        **{"model": MODEL, "base_url": f"{url}/v1", "api_key": "unused", "max_retries": 0}
        | options
    )


def openai_responses(url, **options):
    return openai_chat(url, use_responses_api=True, **options)


def anthropic(url, **options):
    return ChatAnthropic(
        **{"model": MODEL, "base_url": url, "api_key": "unused", "max_retries": 0} | options
    )


def ollama(url, **options):
    options.pop("api_key", None)
    return ChatOllama(**{"model": MODEL, "base_url": url} | options)


MAKERS = [openai_chat, openai_responses, anthropic, ollama]


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__)
def make(request):
    return request.param


@pytest.fixture
def chat(make, server):
    return make(server.url)


def test_plain(chat):
    reply = chat.invoke(q.PLAIN)
    assert reply.text == q.PLAIN_ANSWER
    assert reply.usage_metadata["input_tokens"] > 5
    assert reply.usage_metadata["output_tokens"] > 5


def test_stream(chat):
    pieces = [chunk.text for chunk in chat.stream(q.PLAIN)]
    assert "".join(pieces) == q.PLAIN_ANSWER
    assert len([piece for piece in pieces if piece]) > 3


async def test_async_stream(chat):
    pieces = [chunk.text async for chunk in chat.astream(q.PLAIN)]
    assert "".join(pieces) == q.PLAIN_ANSWER


@pytest.mark.parametrize("streamed", [False, True])
def test_tools_round_trip(chat, streamed):
    bound = chat.bind_tools([weather])

    def ask():
        if not streamed:
            return bound.invoke(messages)
        chunks = iter(bound.stream(messages))
        return sum(chunks, next(chunks))

    messages = [HumanMessage(q.WARM_BOTH)]
    first = ask()
    assert [call["args"] for call in first.tool_calls] == [{"city": "Paris"}, {"city": "Oslo"}]
    messages.append(first)
    messages += [
        ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"], name=call["name"])
        for call in first.tool_calls
    ]
    assert ask().text == q.WARM_BOTH_ANSWER


REASONING = {
    "openai_responses": {"reasoning": {"effort": "medium"}},
    "anthropic": {"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}},
    "ollama": {"reasoning": True},
}


def test_reasoning_is_kept_apart(make, server):
    reply = make(server.url, **REASONING.get(make.__name__, {})).invoke(q.SUM)
    assert reply.text == q.SUM_ANSWER
    # LangChain's OpenAI chat model has no place for reasoning.
    if make is not openai_chat:
        assert "reasoning" in [block["type"] for block in reply.content_blocks]


def test_unknown_model(make, server):
    with pytest.raises(Exception, match="no/such"):
        make(server.url, model="no/such").invoke(q.PLAIN)


def test_context_length(chat):
    with pytest.raises(Exception, match=r"context|too long"):
        chat.invoke(q.TOO_LONG)


def test_error_in_the_middle_of_a_stream(chat):
    with pytest.raises(Exception, match="breaks off"):
        list(chat.stream(q.BREAK_OFF))


@pytest.mark.parametrize("make", MAKERS[:3], ids=lambda make: make.__name__)
def test_wrong_key(make, guarded_server):
    with pytest.raises(Exception, match="401"):
        make(guarded_server.url, api_key="wrong").invoke(q.PLAIN)
    reply = make(guarded_server.url, api_key="secret-key").invoke(q.PLAIN)
    assert reply.text == q.PLAIN_ANSWER
