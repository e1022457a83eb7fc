"""`anthropic`: messages whose form is given, of a model that draws them."""

import json

import anthropic
import pytest
from harness.pets import QUESTION, Pet, Traits
from harness.starter import MODEL, THINKER

MESSAGES = [{"role": "user", "content": QUESTION}]
ASK = {"model": MODEL, "messages": MESSAGES, "max_tokens": 400}
FORMAT = {"type": "json_schema", "schema": Pet.model_json_schema()}
PET = {
    "name": "describe_pet",
    "description": "Takes note of a pet.",
    "input_schema": Pet.model_json_schema(),
    "strict": True,
}
LOOSE = {
    "name": "feed",
    "input_schema": {
        "type": "object",
        "properties": {"food": {"enum": ["fish", "seed"]}},
        "required": ["food"],
        "additionalProperties": False,
    },
}
UNIQUE = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
TEMPERATURES = [0, 0.7, 1.2]


@pytest.fixture(scope="module")
def client(starter):
    return anthropic.Anthropic(
        base_url=starter.url, api_key="unused", max_retries=0, timeout=300
    )


def draw(temperature=1, **extra):
    return {"extra_body": {"temperature": temperature} | extra}


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_parse(client, temperature):
    reply = client.messages.parse(**ASK, output_format=Traits, **draw(temperature))
    assert isinstance(reply.parsed_output, Traits)
    assert reply.stop_reason == "end_turn"


def test_parse_in_beta(client):
    reply = client.beta.messages.parse(**ASK, output_format=Traits, **draw())
    assert isinstance(reply.parsed_output, Traits)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_stream_helper(client, temperature):
    with client.messages.stream(**ASK, output_format=Traits, **draw(temperature)) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert isinstance(final.parsed_output, Traits)
    assert final.content[0].text == text


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_a_schema_of_ones_own(client, temperature):
    reply = client.messages.create(**ASK, output_config={"format": FORMAT}, **draw(temperature))
    Pet.model_validate_json(reply.content[0].text)


def test_the_older_field(client):
    reply = client.messages.create(**ASK, **draw(output_format=FORMAT))
    Pet.model_validate_json(reply.content[0].text)


def test_a_limit_within_the_answer(client):
    reply = client.messages.create(
        **ASK | {"max_tokens": 5}, output_config={"format": FORMAT}
    )
    assert reply.stop_reason == "max_tokens"
    assert reply.content[0].text.startswith("{")


def test_thinking_is_free(client):
    reply = client.messages.create(
        **ASK | {"model": THINKER},
        output_config={"format": FORMAT},
        **draw(thinking={"type": "enabled", "budget_tokens": 8}),
    )
    assert [block.type for block in reply.content] == ["thinking", "text"]
    assert reply.content[0].thinking.strip()
    Pet.model_validate_json(reply.content[1].text)


CHOICES = [{"type": "any"}, {"type": "tool", "name": "describe_pet"}]


@pytest.mark.parametrize("choice", CHOICES, ids=["any", "named"])
@pytest.mark.parametrize("temperature", [0, 1.2])
def test_strict_tool(client, choice, temperature):
    reply = client.messages.create(
        **ASK,
        tools=[PET],
        tool_choice=choice | {"disable_parallel_tool_use": True},
        **draw(temperature),
    )
    [call] = reply.content
    assert call.type == "tool_use" and call.name == "describe_pet"
    # From JSON text, where dates are text.
    Pet.model_validate_json(json.dumps(call.input))
    assert reply.stop_reason == "tool_use"


@pytest.mark.parametrize("choice", CHOICES, ids=["any", "named"])
def test_strict_tool_in_a_stream(client, choice):
    with client.messages.stream(
        **ASK, tools=[PET], tool_choice=choice | {"disable_parallel_tool_use": True}, **draw()
    ) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        final = stream.get_final_message()
    [call] = final.content
    assert json.loads("".join(pieces)) == call.input
    Pet.model_validate_json(json.dumps(call.input))


def test_parallel_calls(client):
    reply = client.messages.create(
        **ASK | {"max_tokens": 300}, tools=[LOOSE], tool_choice={"type": "any"}, **draw()
    )
    assert reply.content and {block.type for block in reply.content} == {"tool_use"}
    whole = reply.content if reply.stop_reason == "tool_use" else reply.content[:-1]
    assert all(call.input["food"] in ["fish", "seed"] for call in whole)


def test_a_call_after_thinking(client):
    reply = client.messages.create(
        **ASK | {"model": THINKER},
        tools=[LOOSE],
        tool_choice={"type": "tool", "name": "feed"},
        **draw(thinking={"type": "enabled", "budget_tokens": 8}),
    )
    assert [block.type for block in reply.content] == ["thinking", "tool_use"]
    assert reply.content[1].input["food"] in ["fish", "seed"]


def test_a_call_or_an_answer_in_form(client):
    reply = client.messages.create(
        **ASK,
        tools=[PET],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        output_config={"format": FORMAT},
        **draw(),
    )
    for block in reply.content:
        said = block.text if block.type == "text" else json.dumps(block.input)
        Pet.model_validate_json(said)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"output_config": {"format": FORMAT | {"schema": UNIQUE}}},
            r"output_config\.format\.schema.*uniqueItems.*/properties/a",
        ),
        ({"tools": [LOOSE | {"strict": True, "input_schema": UNIQUE}]}, "feed.*uniqueItems"),
        ({"output_config": {"format": {"type": "yaml", "schema": {}}}}, r"output_config\.format"),
    ],
)
def test_what_cannot_be_enforced_is_refused_by_name(client, options, words):
    with pytest.raises(anthropic.BadRequestError, match=words):
        client.messages.create(**ASK, **options)
