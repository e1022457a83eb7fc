"""`openai`: chat completions and completions whose form is given, of a model that draws them."""

import asyncio
import json
import math
import re

import openai
import pytest
from harness.pets import DRAWS, QUESTION, SOME_DRAWS, Pet, Traits
from harness.starter import MODEL, THINKER

MESSAGES = [{"role": "user", "content": QUESTION}]
LIMIT = 400
ASK = {"model": MODEL, "messages": MESSAGES, "max_completion_tokens": LIMIT}
PET = openai.pydantic_function_tool(Pet, name="describe_pet")
LOOSE = {
    "type": "function",
    "function": {
        "name": "feed",
        "parameters": {
            "type": "object",
            "properties": {"food": {"enum": ["fish", "seed"]}, "cups": {"enum": [1, 2]}},
            "required": ["food", "cups"],
            "additionalProperties": False,
        },
    },
}
GBNF = 'root ::= kind " " [0-9]{1,2}\nkind ::= "cat" | "dog"'
LARK = 'start: KIND " " /[0-9]{1,2}/\nKIND: "cat" | "dog"'


@pytest.fixture(scope="module")
def client(starter):
    return openai.OpenAI(
        base_url=f"{starter.url}/v1", api_key="unused", max_retries=0, timeout=300
    )


@pytest.mark.parametrize(("temperature", "seed"), DRAWS)
def test_parse(client, temperature, seed):
    reply = client.chat.completions.parse(
        **ASK, response_format=Pet, temperature=temperature, seed=seed
    )
    choice = reply.choices[0]
    assert isinstance(choice.message.parsed, Pet)
    assert choice.finish_reason == "stop"
    assert choice.message.refusal is None


def test_parse_of_another_shape(client):
    reply = client.chat.completions.parse(**ASK, response_format=Traits, temperature=1)
    assert isinstance(reply.choices[0].message.parsed, Traits)


@pytest.mark.parametrize(("temperature", "seed"), SOME_DRAWS)
def test_stream_helper(client, temperature, seed):
    with client.chat.completions.stream(
        **ASK, response_format=Pet, temperature=temperature, seed=seed
    ) as stream:
        deltas = [event for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Pet)
    assert "".join(event.delta for event in deltas) == final.choices[0].message.content
    assert len(deltas) > 10
    partial = [event.parsed for event in deltas if event.parsed]
    assert partial[-1].keys() == Pet.model_fields.keys()


def test_a_stream_says_what_a_whole_reply_says(client):
    options = ASK | {"temperature": 1, "seed": 11}
    whole = client.chat.completions.parse(**options, response_format=Pet)
    with client.chat.completions.stream(**options, response_format=Pet) as stream:
        streamed = stream.get_final_completion()
    assert streamed.choices[0].message.content == whole.choices[0].message.content


def test_several_choices(client):
    reply = client.chat.completions.parse(
        **ASK, response_format=Pet, n=3, temperature=1, seed=5
    )
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert all(isinstance(choice.message.parsed, Pet) for choice in reply.choices)
    assert len({choice.message.content for choice in reply.choices}) > 1


def test_logprobs(client):
    reply = client.chat.completions.parse(
        **ASK, response_format=Pet, temperature=1, seed=6, logprobs=True, top_logprobs=3
    )
    choice = reply.choices[0]
    assert isinstance(choice.message.parsed, Pet)
    entries = choice.logprobs.content
    said = b"".join(bytes(entry.bytes) for entry in entries).decode()
    assert said.startswith(choice.message.content)
    for entry in entries:
        assert math.isfinite(entry.logprob) and entry.logprob <= 0
        assert len(entry.top_logprobs) == 3
        # JSON text has no infinity.
        assert all(math.isfinite(other.logprob) for other in entry.top_logprobs)


def test_stop_sequence(client):
    reply = client.chat.completions.create(
        **ASK, response_format=openai_format(Pet), temperature=1, seed=7, stop=['"mood"']
    )
    choice = reply.choices[0]
    assert choice.finish_reason == "stop"
    assert '"kind"' in choice.message.content and '"mood"' not in choice.message.content


@pytest.mark.parametrize("streamed", [False, True])
def test_a_limit_within_the_answer(client, streamed):
    options = ASK | {"max_completion_tokens": 5}
    with pytest.raises(openai.LengthFinishReasonError):
        if streamed:
            with client.chat.completions.stream(**options, response_format=Pet) as stream:
                stream.get_final_completion()
        else:
            client.chat.completions.parse(**options, response_format=Pet)
    reply = client.chat.completions.create(**options, response_format=openai_format(Pet))
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 5
    assert reply.choices[0].message.content.startswith("{")


def openai_format(model, **options):
    schema = model.model_json_schema()
    return {"type": "json_schema", "json_schema": {"name": "pet", "schema": schema} | options}


@pytest.mark.parametrize("strict", [{}, {"strict": False}])
def test_schemas_are_enforced_however_strict(client, strict):
    reply = client.chat.completions.create(
        **ASK, response_format=openai_format(Pet, **strict), temperature=1, seed=8
    )
    Pet.model_validate_json(reply.choices[0].message.content)


def test_json_object(client):
    reply = client.chat.completions.create(
        **ASK, response_format={"type": "json_object"}, temperature=1, seed=9
    )
    content = reply.choices[0].message.content
    if reply.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(content), dict)
    else:
        assert content.startswith("{")


@pytest.mark.parametrize(("budget", "streamed"), [(6, False), (12, True)])
def test_reasoning_is_free(client, budget, streamed):
    options = ASK | {
        "model": THINKER,
        "temperature": 1,
        "seed": 10,
        "extra_body": {"thinking_budget": budget},
    }
    if streamed:
        with client.chat.completions.stream(**options, response_format=Pet) as stream:
            chunks = [event.chunk for event in stream if event.type == "chunk"]
            message = stream.get_final_completion().choices[0].message
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        extras = [delta.model_extra or {} for delta in deltas]
        thought = "".join(extra.get("reasoning_content") or "" for extra in extras)
    else:
        message = client.chat.completions.parse(**options, response_format=Pet).choices[0].message
        thought = message.model_extra["reasoning_content"]
    assert thought.strip()
    assert isinstance(message.parsed, Pet)


CONSTRAINTS = [
    ({"guided_choice": ["yes", "no", "maybe so"]}, "yes|no|maybe so"),
    ({"guided_regex": "(cat|dog) [0-9]{1,2}"}, "(cat|dog) [0-9]{1,2}"),
    ({"guided_grammar": GBNF}, "(cat|dog) [0-9]{1,2}"),
    ({"structured_outputs": {"choice": ["größer", "kleiner"]}}, "größer|kleiner"),
    ({"structured_outputs": {"regex": "[a-c]{3}"}}, "[a-c]{3}"),
    ({"structured_outputs": {"grammar": LARK}}, "(cat|dog) [0-9]{1,2}"),
    ({"grammar": GBNF}, "(cat|dog) [0-9]{1,2}"),
    ({"response_format": {"type": "regex", "pattern": "[xyz]{2,4}"}}, "[xyz]{2,4}"),
]


@pytest.mark.parametrize(("extra", "pattern"), CONSTRAINTS)
@pytest.mark.parametrize(("temperature", "seed"), DRAWS)
def test_constraints_of_other_servers(client, extra, pattern, temperature, seed):
    draw = {"temperature": temperature, "seed": seed, "extra_body": extra}
    chat = client.chat.completions.create(**ASK, **draw).choices[0]
    assert re.fullmatch(pattern, chat.message.content), chat.message.content
    assert chat.finish_reason == "stop"
    text = client.completions.create(model=MODEL, prompt="The answer is", max_tokens=40, **draw)
    assert re.fullmatch(pattern, text.choices[0].text), text.choices[0].text


@pytest.mark.parametrize("spelling", ["guided_json", "json_schema", "structured_outputs"])
def test_schemas_of_other_servers(client, spelling):
    schema = Pet.model_json_schema()
    extra = {
        "guided_json": {"guided_json": json.dumps(schema)},
        "json_schema": {"json_schema": schema},
        "structured_outputs": {"structured_outputs": {"json": schema}},
    }[spelling]
    draw = {"temperature": 1, "seed": 12, "extra_body": extra}
    reply = client.chat.completions.create(**ASK, **draw)
    Pet.model_validate_json(reply.choices[0].message.content)
    text = client.completions.create(model=MODEL, prompt="A pet: ", max_tokens=LIMIT, **draw)
    Pet.model_validate_json(text.choices[0].text)


def test_completions_of_several_prompts(client):
    reply = client.completions.create(
        model=MODEL,
        prompt=["A cat is", "A dog is"],
        n=2,
        max_tokens=40,
        temperature=1,
        seed=13,
        logprobs=1,
        extra_body={"guided_regex": "(big|small), (loud|quiet)"},
    )
    assert len(reply.choices) == 4
    for choice in reply.choices:
        assert re.fullmatch("(big|small), (loud|quiet)", choice.text)


CHOICES = ["required", {"type": "function", "function": {"name": "describe_pet"}}]


@pytest.mark.parametrize("choice", CHOICES, ids=["required", "named"])
@pytest.mark.parametrize(("temperature", "seed"), SOME_DRAWS)
def test_strict_tool(client, choice, temperature, seed):
    reply = client.chat.completions.parse(
        **ASK,
        tools=[PET],
        tool_choice=choice,
        parallel_tool_calls=False,
        temperature=temperature,
        seed=seed,
    )
    assert reply.choices[0].finish_reason == "tool_calls"
    [call] = reply.choices[0].message.tool_calls
    assert call.function.name == "describe_pet"
    assert isinstance(call.function.parsed_arguments, Pet)


@pytest.mark.parametrize("choice", CHOICES, ids=["required", "named"])
def test_strict_tool_in_a_stream(client, choice):
    with client.chat.completions.stream(
        **ASK, tools=[PET], tool_choice=choice, parallel_tool_calls=False, temperature=1, seed=14
    ) as stream:
        done = [e for e in stream if e.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    assert [event.name for event in done] == ["describe_pet"]
    assert isinstance(done[0].parsed_arguments, Pet)
    [call] = final.choices[0].message.tool_calls
    assert isinstance(call.function.parsed_arguments, Pet)
    assert final.choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("seed", [15, 16])
def test_loose_tool_that_must_be_called(client, seed):
    reply = client.chat.completions.create(
        **ASK,
        tools=[LOOSE, PET],
        tool_choice={"type": "function", "function": {"name": "feed"}},
        temperature=1,
        seed=seed,
    )
    [call] = reply.choices[0].message.tool_calls
    assert call.function.name == "feed"
    arguments = json.loads(call.function.arguments)
    assert arguments["food"] in ["fish", "seed"] and arguments["cups"] in [1, 2]


def test_custom_tool_held_to_a_regex(client):
    regex = r'(feed|walk) "[a-z]{1,8}" at [0-9]{1,2}'
    grammar = {"syntax": "regex", "definition": regex}
    custom = {"name": "remind", "format": {"type": "grammar", "grammar": grammar}}
    options = ASK | {"tools": [{"type": "custom", "custom": custom}]}
    reply = client.chat.completions.create(
        **options, tool_choice="required", parallel_tool_calls=False, temperature=1, seed=17
    )
    [call] = reply.choices[0].message.tool_calls
    assert call.type == "custom"
    assert re.fullmatch(regex, call.custom.input)
    custom["format"]["grammar"] = {"syntax": "lark", "definition": "start: /a/"}
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(**options)
    assert caught.value.param == "tools[0].custom.format.grammar.syntax"


@pytest.mark.parametrize("seed", [18, 19])
def test_parallel_calls(client, seed):
    reply = client.chat.completions.create(
        **ASK | {"max_completion_tokens": 250},
        tools=[openai.pydantic_function_tool(Traits, name="describe_traits")],
        tool_choice="required",
        temperature=1,
        seed=seed,
    )
    calls = reply.choices[0].message.tool_calls
    assert len({call.id for call in calls}) == len(calls)
    # How many calls there are is the model's choice, and the last may be cut.
    whole = calls if reply.choices[0].finish_reason == "tool_calls" else calls[:-1]
    assert whole
    for call in whole:
        Traits.model_validate_json(call.function.arguments)


@pytest.mark.parametrize("seed", [22, 23])
def test_a_call_or_an_answer_in_form(client, seed):
    reply = client.chat.completions.parse(
        **ASK,
        tools=[PET],
        response_format=Traits,
        parallel_tool_calls=False,
        temperature=1,
        seed=seed,
    )
    message = reply.choices[0].message
    for call in message.tool_calls or []:
        assert isinstance(call.function.parsed_arguments, Pet)
    assert message.tool_calls or isinstance(message.parsed, Traits)


def test_only_allowed_tools_are_called(client):
    reply = client.chat.completions.create(
        **ASK,
        tools=[LOOSE, PET],
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "feed"}}],
            },
        },
        parallel_tool_calls=False,
        temperature=1,
        seed=25,
    )
    [call] = reply.choices[0].message.tool_calls
    assert call.function.name == "feed"


async def test_answers_in_company(starter):
    """Every request of a batch keeps to its own grammar, and the free one to none."""
    async with openai.AsyncOpenAI(
        base_url=f"{starter.url}/v1", api_key="unused", max_retries=0, timeout=300
    ) as client:
        ask = client.chat.completions.create
        replies = await asyncio.gather(
            client.chat.completions.parse(**ASK, response_format=Pet, temperature=1, seed=26),
            client.chat.completions.parse(**ASK, response_format=Traits, temperature=1, seed=27),
            ask(**ASK, extra_body={"guided_regex": "[ab]{8}"}, temperature=1, seed=28),
            ask(**ASK, extra_body={"guided_choice": ["one", "two"]}, temperature=1, seed=29),
            client.chat.completions.parse(
                **ASK, tools=[PET], tool_choice="required", parallel_tool_calls=False
            ),
            ask(**ASK | {"max_completion_tokens": 40}, temperature=0),
        )
    messages = [reply.choices[0].message for reply in replies]
    assert isinstance(messages[0].parsed, Pet)
    assert isinstance(messages[1].parsed, Traits)
    assert re.fullmatch("[ab]{8}", messages[2].content)
    assert messages[3].content in ["one", "two"]
    assert isinstance(messages[4].tool_calls[0].function.parsed_arguments, Pet)
    assert len(messages[5].content) > 20


UNIQUE = {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}}
REFUSED = [
    (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": UNIQUE}}},
        "response_format.json_schema.schema",
        "uniqueItems.*/properties/a",
    ),
    ({"guided_json": {"not": {"type": "string"}}}, "guided_json", "`not`"),
    ({"guided_regex": "(?=a)b"}, "guided_regex", "look"),
    ({"guided_regex": "("}, "guided_regex", "."),
    ({"guided_grammar": "root ::= missing"}, "guided_grammar", "missing"),
    ({"structured_outputs": {"grammar": "start: ("}}, "structured_outputs.grammar", "."),
    ({"guided_json": {}, "guided_choice": ["a"]}, "guided_choice", "guided_json"),
    ({"structured_outputs": {"structural_tag": "{}"}}, "structured_outputs.structural_tag", "."),
]


@pytest.mark.parametrize(("extra", "param", "words"), REFUSED)
def test_what_cannot_be_enforced_is_refused_by_name(client, extra, param, words):
    for streamed in [False, True]:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(**ASK, extra_body=extra, stream=streamed)
        assert caught.value.param == param
        assert re.search(words, caught.value.body["message"]), caught.value.body["message"]


def test_a_strict_tool_that_cannot_be_enforced_is_refused(client):
    strict = {"name": "count", "parameters": UNIQUE, "strict": True}
    with pytest.raises(openai.BadRequestError, match="count.*uniqueItems"):
        client.chat.completions.create(**ASK, tools=[{"type": "function", "function": strict}])
    loose = strict | {"strict": False}
    reply = client.chat.completions.create(
        **ASK | {"max_completion_tokens": 20}, tools=[{"type": "function", "function": loose}]
    )
    assert reply.choices[0].finish_reason in ["stop", "length", "tool_calls"]
