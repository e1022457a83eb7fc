"""`openai`: responses and conversations."""

import json

import openai
import pytest
from harness import questions as q
from harness.playback import MODEL

TOOLS = [
    {
        "type": "function",
        "name": "weather",
        "description": "Get the temperature in a city.",
        "parameters": q.WEATHER_SCHEMA,
        "strict": False,
    }
]


@pytest.fixture(scope="module")
def client(openai_url):
    return openai.OpenAI(base_url=openai_url, api_key="unused", max_retries=0, timeout=60)


def outputs(items):
    """Calls the functions that a response asks for."""
    calls = [item for item in items if item.type == "function_call"]
    assert all(call.name == "weather" for call in calls)
    return [
        {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": q.weather(**json.loads(call.arguments)),
        }
        for call in calls
    ]


def test_plain(client):
    reply = client.responses.create(model=MODEL, input=q.PLAIN)
    assert reply.output_text == q.PLAIN_ANSWER
    assert reply.status == "completed"
    assert reply.model == MODEL
    assert reply.usage.total_tokens == reply.usage.input_tokens + reply.usage.output_tokens


def test_stream(client):
    with client.responses.stream(model=MODEL, input=q.PLAIN) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert "".join(deltas) == q.PLAIN_ANSWER
    assert len(deltas) > 3
    assert final.output_text == q.PLAIN_ANSWER


def test_events_are_numbered_and_in_order(client):
    events = list(client.responses.create(model=MODEL, input=q.PLAIN, stream=True))
    numbers = [event.sequence_number for event in events]
    assert numbers == sorted(set(numbers))
    kinds = [event.type for event in events]
    once = [kind for kind in kinds if not kind.endswith(".delta")]
    assert once == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]


def test_tools_round_trip(client):
    first = client.responses.create(model=MODEL, input=q.WARM_BOTH, tools=TOOLS)
    answers = outputs(first.output)
    assert len(answers) == 2
    items = [{"role": "user", "content": q.WARM_BOTH}, *first.output, *answers]
    second = client.responses.create(model=MODEL, input=items, tools=TOOLS)
    assert second.output_text == q.WARM_BOTH_ANSWER


def test_streamed_tools_round_trip_by_previous_response(client):
    with client.responses.stream(model=MODEL, input=q.WARM, tools=TOOLS) as stream:
        kinds = {event.type for event in stream}
        first = stream.get_final_response()
    assert "response.function_call_arguments.delta" in kinds
    with client.responses.stream(
        model=MODEL,
        input=outputs(first.output),
        previous_response_id=first.id,
        tools=TOOLS,
    ) as stream:
        stream.until_done()
        assert stream.get_final_response().output_text == q.WARM_ANSWER


def test_reasoning(client):
    reply = client.responses.create(model=MODEL, input=q.SUM, reasoning={"effort": "medium"})
    assert [item.type for item in reply.output] == ["reasoning", "message"]
    assert reply.output_text == q.SUM_ANSWER
    assert reply.usage.output_tokens_details.reasoning_tokens > 10


def test_reasoning_can_be_replayed(client):
    first = client.responses.create(
        model=MODEL, input=q.SUM, store=False, include=["reasoning.encrypted_content"]
    )
    assert first.output[0].encrypted_content
    items = [
        {"role": "user", "content": q.SUM},
        *first.output,
        {"role": "user", "content": q.PLAIN},
    ]
    second = client.responses.create(model=MODEL, input=items, store=False)
    assert second.output_text == q.PLAIN_ANSWER


def test_stored_responses(client):
    reply = client.responses.create(model=MODEL, input=q.PLAIN)
    assert client.responses.retrieve(reply.id).output_text == q.PLAIN_ANSWER
    items = list(client.responses.input_items.list(reply.id))
    assert [item.role for item in items] == ["user"]
    client.responses.delete(reply.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(reply.id)


def test_conversation(client):
    conversation = client.conversations.create()
    client.responses.create(model=MODEL, input=q.PLAIN, conversation=conversation.id)
    client.responses.create(model=MODEL, input=q.SUM, conversation=conversation.id)
    items = list(client.conversations.items.list(conversation.id, order="asc"))
    roles = [item.role for item in items if item.type == "message"]
    assert roles == ["user", "assistant", "user", "assistant"]
    client.conversations.delete(conversation.id)


def test_input_tokens_are_those_of_the_response(client):
    counted = client.responses.input_tokens.count(model=MODEL, input=q.WARM, tools=TOOLS)
    reply = client.responses.create(model=MODEL, input=q.WARM, tools=TOOLS)
    assert counted.input_tokens == reply.usage.input_tokens


def test_cut_by_its_limit(client):
    reply = client.responses.create(model=MODEL, input=q.PLAIN, max_output_tokens=3)
    assert reply.status == "incomplete"
    assert reply.incomplete_details.reason == "max_output_tokens"


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model="no/such", input=q.PLAIN)
    assert "no/such" in caught.value.body["message"]


def test_bad_value(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input=q.PLAIN, temperature=-1)
    assert caught.value.param == "temperature"


def test_unknown_previous_response(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input=q.PLAIN, previous_response_id="resp_no")
    assert caught.value.code == "previous_response_not_found"
    assert caught.value.param == "previous_response_id"


@pytest.mark.parametrize("stream", [False, True])
def test_context_length(client, stream):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input=q.TOO_LONG, stream=stream)
    assert caught.value.code == "context_length_exceeded"


def test_error_in_the_middle_of_a_stream(client):
    said, failed = [], None
    try:
        for event in client.responses.create(model=MODEL, input=q.BREAK_OFF, stream=True):
            if event.type == "response.output_text.delta":
                said.append(event.delta)
            if event.type == "response.failed":
                failed = event.response.error.message
    except openai.APIError as error:
        assert not isinstance(error, openai.APIConnectionError)
        failed = str(error)
    assert "breaks off" in failed
    assert "".join(said).startswith("These are")


def test_wrong_key(guarded_server):
    client = openai.OpenAI(
        base_url=f"{guarded_server.url}/v1", api_key="wrong", max_retries=0
    )
    with pytest.raises(openai.AuthenticationError):
        client.responses.create(model=MODEL, input=q.PLAIN)
