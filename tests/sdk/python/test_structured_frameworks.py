"""pydantic-ai, LangChain and LiteLLM: their own ways to ask for objects, of a model that draws."""

import anthropic
import litellm
import openai
import pytest
from harness.pets import QUESTION, Anything, Pet, Traits
from harness.starter import MODEL
from langchain_anthropic import ChatAnthropic
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

LIMIT = 400


def openai_provider(url):
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)
    return OpenAIProvider(openai_client=client)


def chat(url):
    return OpenAIChatModel(MODEL, provider=openai_provider(url))


def responses(url):
    return OpenAIResponsesModel(MODEL, provider=openai_provider(url))


def messages(url):
    client = anthropic.AsyncAnthropic(base_url=url, api_key="unused", max_retries=0)
    provider = AnthropicProvider(anthropic_client=client)
    # The SDK knows by name which of Anthropic's models have native output.
    profile = ModelProfile(supports_json_schema_output=True)
    return AnthropicModel(MODEL, provider=provider, profile=profile)


@pytest.mark.parametrize("output", [ToolOutput, NativeOutput])
@pytest.mark.parametrize("make", [chat, responses, messages], ids=lambda make: make.__name__)
@pytest.mark.parametrize("streamed", [False, True])
async def test_pydantic_ai(starter, make, output, streamed):
    shape = Traits if make is messages else Pet
    settings = {"temperature": 1.0, "max_tokens": LIMIT, "parallel_tool_calls": False}
    agent = Agent(
        make(starter.url), output_type=output(shape), model_settings=settings, retries=0
    )
    if streamed:
        async with agent.run_stream(QUESTION) as result:
            partial = [part async for part in result.stream_output(debounce_by=None)]
            value = await result.get_output()
        assert len(partial) > 1
    else:
        value = (await agent.run(QUESTION)).output
    assert isinstance(value, shape)


async def test_pydantic_ai_by_prompt(starter):
    """The schema is only told to the model, which is too small to follow it: any object will do."""
    settings = {"temperature": 0.0, "max_tokens": 800}
    agent = Agent(
        chat(starter.url), output_type=PromptedOutput(Anything), model_settings=settings, retries=0
    )
    value = (await agent.run("Say {} in JSON.")).output
    assert isinstance(value, Anything)


def openai_chat(url, limit=LIMIT, **options):
    return ChatOpenAI(
        model=MODEL,
        base_url=f"{url}/v1",
        api_key="unused",
        max_retries=0,
        temperature=1.0,
        max_completion_tokens=limit,
        **options,
    )


def openai_responses(url):
    return openai_chat(url, use_responses_api=True)


def langchain_anthropic(url):
    return ChatAnthropic(
        model=MODEL, base_url=url, api_key="unused", max_retries=0, max_tokens=LIMIT
    )


def langchain_ollama(url, limit=LIMIT):
    return ChatOllama(model=MODEL, base_url=url, temperature=1.0, num_predict=limit)


WAYS = [
    (openai_chat, "json_schema", Pet),
    (openai_chat, "function_calling", Pet),
    (openai_responses, "json_schema", Pet),
    (openai_responses, "function_calling", Pet),
    (langchain_anthropic, "json_schema", Traits),
    (langchain_anthropic, "function_calling", Pet),
    (langchain_ollama, "json_schema", Pet),
]


@pytest.mark.parametrize(
    ("make", "method", "shape"), WAYS, ids=[f"{way[0].__name__}-{way[1]}" for way in WAYS]
)
def test_langchain(starter, make, method, shape):
    model = make(starter.url).with_structured_output(shape, method=method)
    assert isinstance(model.invoke(QUESTION), shape)


@pytest.mark.parametrize("make", [openai_chat, langchain_ollama], ids=lambda make: make.__name__)
def test_langchain_any_object(starter, make):
    """Any object at all has no end of its own: most are short, and others are not waited for."""
    model = make(starter.url, limit=100)
    model = model.with_structured_output(Anything, method="json_mode", include_raw=True)
    for _ in range(16):
        try:
            answer = model.invoke(QUESTION)
        except openai.LengthFinishReasonError:
            continue
        if answer["parsing_error"]:
            assert answer["raw"].response_metadata["done_reason"] == "length"
            continue
        assert isinstance(answer["parsed"], Anything)
        return
    raise AssertionError("no object came to an end")


def test_langchain_stream(starter):
    model = openai_chat(starter.url).with_structured_output(Pet, method="json_schema")
    *_, last = model.stream(QUESTION)
    assert isinstance(last, Pet)


def test_litellm(starter):
    reply = litellm.completion(
        model=f"hosted_vllm/{MODEL}",
        api_base=f"{starter.url}/v1",
        api_key="unused",
        messages=[{"role": "user", "content": QUESTION}],
        response_format=Pet,
        temperature=1.0,
        max_tokens=LIMIT,
    )
    Pet.model_validate_json(reply.choices[0].message.content)
