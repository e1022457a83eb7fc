"""pydantic-ai's agents over OpenAI (both APIs) and Anthropic."""

import pytest
from harness import questions as q
from harness.playback import MODEL
from pydantic_ai import Agent, ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ThinkingPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

import anthropic
import openai


def openai_provider(url, key):
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)
    return OpenAIProvider(openai_client=client)


def chat(url, name=MODEL, key="unused"):
    return OpenAIChatModel(name, provider=openai_provider(url, key))


def responses(url, name=MODEL, key="unused"):
    return OpenAIResponsesModel(name, provider=openai_provider(url, key))


def messages(url, name=MODEL, key="unused"):
    client = anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))


@pytest.fixture(params=[chat, responses, messages], ids=lambda make: make.__name__)
def make(request):
    return request.param


@pytest.fixture
def model(make, server):
    return make(server.url)


async def test_plain(model):
    result = await Agent(model, instructions="Be kind.").run(q.PLAIN)
    assert result.output == q.PLAIN_ANSWER
    assert result.usage.output_tokens > 5


async def test_stream(model):
    async with Agent(model).run_stream(q.PLAIN) as result:
        pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
    assert "".join(pieces) == q.PLAIN_ANSWER
    assert len(pieces) > 3


@pytest.mark.parametrize("streamed", [False, True])
async def test_tools_round_trip(model, streamed):
    calls = []
    agent = Agent(model)

    @agent.tool_plain
    def weather(city: str) -> str:
        """Get the temperature in a city."""
        calls.append(city)
        return q.weather(city)

    if streamed:
        async with agent.run_stream(q.WARM_BOTH) as result:
            output = await result.get_output()
    else:
        output = (await agent.run(q.WARM_BOTH)).output
    assert output == q.WARM_BOTH_ANSWER
    assert sorted(calls) == ["Oslo", "Paris"]


async def test_reasoning(make, server):
    settings = {
        "responses": {"openai_reasoning_effort": "medium"},
        "messages": {
            "max_tokens": 2000,
            "anthropic_thinking": {"type": "enabled", "budget_tokens": 1024},
        },
    }.get(make.__name__)
    result = await Agent(make(server.url), model_settings=settings).run(q.SUM)
    assert result.output == q.SUM_ANSWER
    parts = [part for message in result.all_messages() for part in message.parts]
    thoughts = [part.content.strip() for part in parts if isinstance(part, ThinkingPart)]
    assert thoughts == [q.SUM_REASONING]


async def test_unknown_model(make, server):
    with pytest.raises(ModelHTTPError) as caught:
        await Agent(make(server.url, "no/such")).run(q.PLAIN)
    assert caught.value.status_code == 404
    assert "no/such" in str(caught.value)


async def test_context_length(model):
    with pytest.raises(ModelHTTPError) as caught:
        await Agent(model).run(q.TOO_LONG)
    assert caught.value.status_code == 400


async def test_wrong_key(make, guarded_server):
    with pytest.raises((ModelHTTPError, ModelAPIError)) as caught:
        await Agent(make(guarded_server.url, key="wrong")).run(q.PLAIN)
    assert caught.value.status_code == 401
    result = await Agent(make(guarded_server.url, key="secret-key")).run(q.PLAIN)
    assert result.output == q.PLAIN_ANSWER
