"""`litellm`, which speaks every dialect by a prefix of the model's name."""

import json

import litellm
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
BASES = {"openai": "/v1", "lm_studio": "/v1", "anthropic": "", "ollama_chat": ""}
ALL = pytest.mark.parametrize("provider", BASES)


def user(text):
    return [{"role": "user", "content": text}]


def complete(server, provider, messages, model=MODEL, **options):
    return litellm.completion(
        **{
            "model": f"{provider}/{model}",
            "api_base": server.url + BASES[provider],
            "api_key": "unused",
            "messages": messages,
            "num_retries": 0,
            "max_retries": 0,
            "timeout": 60,
        }
        | options
    )


@ALL
def test_plain(server, provider):
    reply = complete(server, provider, user(q.PLAIN))
    assert reply.choices[0].message.content == q.PLAIN_ANSWER
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.completion_tokens > 5


@ALL
def test_stream(server, provider):
    chunks = list(complete(server, provider, user(q.PLAIN), stream=True))
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "".join(pieces) == q.PLAIN_ANSWER
    assert len([piece for piece in pieces if piece]) > 3


@ALL
def test_tools_round_trip(server, provider):
    messages = user(q.WARM)
    message = complete(server, provider, messages, tools=TOOLS).choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        result = q.weather(**json.loads(call.function.arguments))
        messages.append(
            {"role": "tool", "tool_call_id": call.id, "name": "weather", "content": result}
        )
    reply = complete(server, provider, messages, tools=TOOLS)
    assert reply.choices[0].message.content == q.WARM_ANSWER


@ALL
def test_reasoning(server, provider):
    # Ollama's and Anthropic's dialects show reasoning to those who ask for it.
    asks = {
        "anthropic": {
            "max_tokens": 2000,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            # By the model's name litellm thinks that it cannot.
            "allowed_openai_params": ["thinking"],
        },
        "ollama_chat": {"reasoning_effort": "medium"},
    }.get(provider, {})
    message = complete(server, provider, user(q.SUM), **asks).choices[0].message
    assert message.content == q.SUM_ANSWER
    assert message.reasoning_content.strip() == q.SUM_REASONING


@ALL
def test_unknown_model(server, provider):
    with pytest.raises((litellm.NotFoundError, litellm.APIConnectionError), match="no/such"):
        complete(server, provider, user(q.PLAIN), model="no/such")


@pytest.mark.parametrize("provider", ["openai", "lm_studio", "anthropic"])
def test_context_length(server, provider):
    with pytest.raises(litellm.ContextWindowExceededError):
        complete(server, provider, user(q.TOO_LONG))


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_wrong_key(guarded_server, provider):
    with pytest.raises(litellm.AuthenticationError):
        complete(guarded_server, provider, user(q.PLAIN), api_key="wrong")
    reply = complete(guarded_server, provider, user(q.PLAIN), api_key="secret-key")
    assert reply.choices[0].message.content == q.PLAIN_ANSWER
