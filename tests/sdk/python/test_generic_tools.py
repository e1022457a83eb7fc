"""Tools for a model whose chat template takes none: the starter as it is, which draws its calls."""

import json

import anthropic
import httpx
import ollama
import openai
import pytest
from harness.pets import QUESTION, Pet
from harness.starter import PLAIN

NAME = "describe_pet"
DESCRIPTION = "Takes note of a pet."
SCHEMA = Pet.model_json_schema()
FUNCTION = {
    "type": "function",
    "function": {"name": NAME, "description": DESCRIPTION, "parameters": SCHEMA},
}
TOOL = {"name": NAME, "description": DESCRIPTION, "input_schema": SCHEMA}
MESSAGES = [{"role": "user", "content": QUESTION}]
CHOSEN = {"type": "function", "function": {"name": NAME}}
LIMIT = 400
# Tokens of answers that may be cut, which say so.
SHORT = 48


@pytest.fixture(scope="module")
def openai_client(starter):
    return openai.OpenAI(
        base_url=f"{starter.url}/v1", api_key="unused", max_retries=0, timeout=300
    )


@pytest.fixture(scope="module")
def anthropic_client(starter):
    return anthropic.Anthropic(
        base_url=starter.url, api_key="unused", max_retries=0, timeout=300
    )


@pytest.fixture(scope="module")
def ollama_client(starter):
    return ollama.Client(host=starter.url, timeout=300)


@pytest.mark.parametrize("tool_choice", ["required", CHOSEN])
@pytest.mark.parametrize("seed", [1, 2])
def test_forced_in_chat(openai_client, tool_choice, seed):
    reply = openai_client.chat.completions.create(
        model=PLAIN,
        messages=MESSAGES,
        tools=[FUNCTION],
        tool_choice=tool_choice,
        parallel_tool_calls=False,
        max_tokens=LIMIT,
        seed=seed,
        temperature=1,
    )
    (call,) = reply.choices[0].message.tool_calls
    assert reply.choices[0].finish_reason == "tool_calls"
    assert call.function.name == NAME
    Pet.model_validate_json(call.function.arguments)


def test_streamed_in_chat(openai_client):
    with openai_client.chat.completions.stream(
        model=PLAIN,
        messages=MESSAGES,
        tools=[FUNCTION],
        tool_choice=CHOSEN,
        max_tokens=LIMIT,
        seed=3,
    ) as stream:
        message = stream.get_final_completion().choices[0].message
    assert not message.content
    Pet.model_validate_json(message.tool_calls[0].function.arguments)


def test_forced_in_responses(openai_client):
    reply = openai_client.responses.create(
        model=PLAIN,
        input=QUESTION,
        tools=[{"type": "function", "strict": False} | FUNCTION["function"]],
        tool_choice={"type": "function", "name": NAME},
        max_output_tokens=LIMIT,
    )
    (call,) = [item for item in reply.output if item.type == "function_call"]
    Pet.model_validate_json(call.arguments)


def test_forced_in_messages(anthropic_client):
    reply = anthropic_client.messages.create(
        model=PLAIN,
        messages=MESSAGES,
        tools=[TOOL],
        tool_choice={"type": "tool", "name": NAME},
        max_tokens=LIMIT,
    )
    (call,) = reply.content
    assert reply.stop_reason == "tool_use"
    Pet.model_validate(call.input)


def valid(calls):
    """Whatever the model draws is text or a call that the schema allows."""
    for name, arguments in calls:
        assert name == NAME
        Pet.model_validate(arguments)


def test_auto_in_chat(openai_client):
    reply = openai_client.chat.completions.create(
        model=PLAIN, messages=MESSAGES, tools=[FUNCTION], max_tokens=SHORT, temperature=0
    )
    (choice,) = reply.choices
    assert choice.message.content or choice.message.tool_calls
    if choice.finish_reason == "tool_calls":
        calls = choice.message.tool_calls
        valid((call.function.name, json.loads(call.function.arguments)) for call in calls)


def test_auto_in_messages(anthropic_client):
    reply = anthropic_client.messages.create(
        model=PLAIN, messages=MESSAGES, tools=[TOOL], max_tokens=SHORT
    )
    if reply.stop_reason == "tool_use":
        valid((block.name, block.input) for block in reply.content if block.type == "tool_use")
    else:
        assert reply.content


def test_auto_in_ollama(ollama_client):
    reply = ollama_client.chat(
        model=PLAIN, messages=MESSAGES, tools=[FUNCTION], options={"num_predict": SHORT}
    )
    assert reply.message.content or reply.message.tool_calls
    if reply.done_reason == "stop":
        calls = reply.message.tool_calls or ()
        valid((call.function.name, dict(call.function.arguments)) for call in calls)


def test_results_are_answered(openai_client):
    ask = {"model": PLAIN, "tools": [FUNCTION]}
    called = openai_client.chat.completions.create(
        **ask, messages=MESSAGES, tool_choice=CHOSEN, max_tokens=LIMIT, seed=4, temperature=1
    )
    message = called.choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "Noted."}
    reply = openai_client.chat.completions.create(
        **ask,
        messages=[*MESSAGES, message.model_dump(exclude_none=True), result],
        max_tokens=SHORT,
        temperature=0,
    )
    assert reply.choices[0].message.content or reply.choices[0].message.tool_calls
    # The call and its result are part of what is read.
    assert reply.usage.prompt_tokens > called.usage.prompt_tokens + 20


def test_tools_are_counted(anthropic_client):
    count = anthropic_client.messages.count_tokens
    bare = count(model=PLAIN, messages=MESSAGES).input_tokens
    told = count(model=PLAIN, messages=MESSAGES, tools=[TOOL]).input_tokens
    assert told > bare + 50


def test_lists_say_so(starter, ollama_client):
    assert "tools" in ollama_client.show(PLAIN).capabilities
    models = httpx.get(f"{starter.url}/api/v0/models").json()["data"]
    (shown,) = [model for model in models if model["id"] == PLAIN]
    assert "tool_use" in shown["capabilities"]


def test_a_prompt_that_is_too_long_comes_with_both_numbers_and_a_model(openai_client):
    long = [FUNCTION["function"] | {"name": f"tool_{index}"} for index in range(200)]
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client.chat.completions.create(
            model=PLAIN,
            messages=MESSAGES,
            tools=[{"type": "function", "function": function} for function in long],
        )
    message = caught.value.body["message"]
    assert "maximum context length is 8192 tokens" in message
    assert "take a model with a longer context, such as `mlx-community/Qwen3" in message
