"""`openai`: responses whose form is given, of a model that draws them."""

import json
import re

import openai
import pytest
from harness.pets import DRAWS, QUESTION, SOME_DRAWS, Pet, Traits
from harness.starter import MODEL, THINKER

ASK = {"model": MODEL, "input": QUESTION, "max_output_tokens": 400}
PET = openai.pydantic_function_tool(Pet, name="describe_pet")
FORMAT = {"type": "json_schema", "name": "pet", "schema": Pet.model_json_schema()}
LOOSE = {
    "type": "function",
    "name": "feed",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"food": {"enum": ["fish", "seed"]}},
        "required": ["food"],
        "additionalProperties": False,
    },
}
REMINDER = r'(feed|walk) "[a-z]{1,8}" at [0-9]{1,2}'
UNIQUE = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}


@pytest.fixture(scope="module")
def client(starter):
    return openai.OpenAI(
        base_url=f"{starter.url}/v1", api_key="unused", max_retries=0, timeout=300
    )


def draw(temperature=1.0, seed=1, **extra):
    return {"temperature": temperature, "extra_body": {"seed": seed} | extra}


@pytest.mark.parametrize(("temperature", "seed"), DRAWS)
def test_parse(client, temperature, seed):
    reply = client.responses.parse(**ASK, text_format=Pet, **draw(temperature, seed))
    assert isinstance(reply.output_parsed, Pet)
    assert reply.status == "completed"
    assert reply.text.format.type == "json_schema"
    assert reply.text.format.strict is True


def test_parse_of_another_shape(client):
    reply = client.responses.parse(**ASK, text_format=Traits, **draw())
    assert isinstance(reply.output_parsed, Traits)


@pytest.mark.parametrize(("temperature", "seed"), SOME_DRAWS)
def test_stream_helper(client, temperature, seed):
    with client.responses.stream(**ASK, text_format=Pet, **draw(temperature, seed)) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert isinstance(final.output_parsed, Pet)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == final.output_text
    [done] = [event for event in events if event.type == "response.output_text.done"]
    assert isinstance(done.parsed, Pet)


@pytest.mark.parametrize("strict", [{}, {"strict": False}])
def test_schemas_are_enforced_however_strict(client, strict):
    reply = client.responses.create(**ASK, text={"format": FORMAT | strict}, **draw(seed=2))
    Pet.model_validate_json(reply.output_text)
    echoed = reply.text.format.model_dump(by_alias=True, exclude_unset=True)
    assert echoed == FORMAT | strict


def test_the_format_as_chat_has_it(client):
    named = {name: FORMAT[name] for name in ["name", "schema"]}
    form = {"type": "json_schema", "json_schema": named}
    reply = client.responses.create(**ASK, **draw(seed=2, response_format=form))
    Pet.model_validate_json(reply.output_text)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_limit_within_the_answer(client, streamed):
    options = ASK | {"max_output_tokens": 16, "text": {"format": FORMAT}}
    if streamed:
        *_, last = client.responses.create(**options, stream=True)
        assert last.type == "response.incomplete"
        reply = last.response
    else:
        reply = client.responses.create(**options)
    assert reply.status == "incomplete"
    assert reply.incomplete_details.reason == "max_output_tokens"
    assert reply.output_text.startswith("{")


def test_json_object(client):
    reply = client.responses.create(**ASK, text={"format": {"type": "json_object"}}, **draw(seed=3))
    if reply.status == "completed":
        assert isinstance(json.loads(reply.output_text), dict)
    else:
        assert reply.output_text.startswith("{")


def test_logprobs(client):
    reply = client.responses.parse(
        **ASK,
        text_format=Pet,
        include=["message.output_text.logprobs"],
        top_logprobs=2,
        **draw(seed=4),
    )
    [message] = [item for item in reply.output if item.type == "message"]
    entries = message.content[0].logprobs
    said = b"".join(bytes(entry.bytes) for entry in entries).decode()
    assert said.startswith(reply.output_text)


def test_reasoning_is_free(client):
    reply = client.responses.parse(
        **ASK | {"model": THINKER}, text_format=Pet, **draw(seed=5, thinking_budget=8)
    )
    assert [item.type for item in reply.output] == ["reasoning", "message"]
    assert reply.output[0].summary[0].text.strip()
    assert isinstance(reply.output_parsed, Pet)


def test_constraints_of_other_servers(client):
    for extra, pattern in [
        ({"structured_outputs": {"regex": "[a-c]{3}"}}, "[a-c]{3}"),
        ({"guided_choice": ["yes", "no"]}, "yes|no"),
    ]:
        reply = client.responses.create(**ASK, **draw(**extra))
        assert re.fullmatch(pattern, reply.output_text)


CHOICES = [
    "required",
    {"type": "function", "name": "describe_pet"},
    {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "describe_pet"}],
    },
]


@pytest.mark.parametrize("choice", CHOICES, ids=["required", "named", "allowed"])
@pytest.mark.parametrize("streamed", [False, True])
def test_strict_tool(client, choice, streamed):
    options = ASK | {"tools": [PET, LOOSE], "tool_choice": choice, "parallel_tool_calls": False}
    if choice == "required":
        options["tools"] = [PET]
    if streamed:
        with client.responses.stream(**options, **draw(seed=6)) as stream:
            kinds = [event.type for event in stream]
            reply = stream.get_final_response()
        assert "response.function_call_arguments.delta" in kinds
    else:
        reply = client.responses.parse(**options, **draw(seed=6))
    [call] = [item for item in reply.output if item.type == "function_call"]
    assert call.name == "describe_pet"
    assert isinstance(call.parsed_arguments, Pet)


@pytest.mark.parametrize("seed", [7, 8])
def test_loose_tool_that_must_be_called(client, seed):
    reply = client.responses.create(
        **ASK, tools=[LOOSE], tool_choice={"type": "function", "name": "feed"}, **draw(seed=seed)
    )
    [call] = [item for item in reply.output if item.type == "function_call"]
    assert json.loads(call.arguments)["food"] in ["fish", "seed"]


def test_custom_tool_that_must_be_called(client):
    reply = client.responses.create(
        **ASK | {"max_output_tokens": 60},
        tools=[{"type": "custom", "name": "shout", "description": "Says it loudly."}],
        tool_choice={"type": "custom", "name": "shout"},
        **draw(seed=10),
    )
    [call] = [item for item in reply.output if item.type == "custom_tool_call"]
    assert call.name == "shout"


@pytest.mark.parametrize("streamed", [False, True])
def test_custom_tool_held_to_a_regex(client, streamed):
    options = ASK | {
        "tools": [
            {
                "type": "custom",
                "name": "remind",
                "format": {"type": "grammar", "syntax": "regex", "definition": REMINDER},
            }
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    if streamed:
        with client.responses.stream(**options, **draw(seed=11)) as stream:
            reply = stream.until_done().get_final_response()
    else:
        reply = client.responses.create(**options, **draw(seed=11))
    [call] = [item for item in reply.output if item.type == "custom_tool_call"]
    assert re.fullmatch(REMINDER, call.input)


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"text": {"format": FORMAT | {"schema": UNIQUE}}}, "text.format.schema"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    ],
)
def test_what_cannot_be_enforced_is_refused_by_name(client, options, param):
    for streamed in [False, True]:
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(**ASK, **options, stream=streamed)
        assert caught.value.param == param
