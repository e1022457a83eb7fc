"""`ollama`: answers in a given format, of a model that draws them."""

import httpx
import ollama
import pytest
from harness.pets import DRAWS, QUESTION, Pet
from harness.starter import MODEL, THINKER
from pydantic_core import from_json

MESSAGES = [{"role": "user", "content": QUESTION}]
SCHEMA = Pet.model_json_schema()


@pytest.fixture(scope="module")
def client(starter):
    return ollama.Client(host=starter.url, timeout=300)


def options(temperature=1.0, seed=1, limit=400):
    return {"temperature": temperature, "seed": seed, "num_predict": limit}


@pytest.mark.parametrize(("temperature", "seed"), DRAWS)
def test_chat(client, temperature, seed):
    reply = client.chat(
        model=MODEL, messages=MESSAGES, format=SCHEMA, options=options(temperature, seed)
    )
    Pet.model_validate_json(reply.message.content)
    assert reply.done_reason == "stop"


def test_streamed_chat(client):
    parts = list(
        client.chat(
            model=MODEL, messages=MESSAGES, format=SCHEMA, stream=True, options=options(seed=2)
        )
    )
    assert len(parts) > 10
    Pet.model_validate_json("".join(part.message.content for part in parts))


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
def test_generate(client, raw, streamed):
    reply = client.generate(
        model=MODEL,
        prompt=QUESTION,
        format=SCHEMA,
        raw=raw,
        stream=streamed,
        options=options(seed=3),
    )
    parts = list(reply) if streamed else [reply]
    Pet.model_validate_json("".join(part.response for part in parts))
    assert parts[-1].done_reason == "stop"


def test_thinking_is_free(client):
    reply = client.chat(
        model=THINKER,
        messages=[{"role": "user", "content": "Name a pet."}],
        format={"enum": ["Rex", "Tom"]},
        think=True,
        options=options(seed=4, limit=120),
    )
    # Ollama has no budget for thoughts, and a small model may never end its own.
    assert reply.message.thinking
    assert reply.message.content in ['"Rex"', '"Tom"'] or reply.done_reason == "length"


@pytest.mark.parametrize("call", ["chat", "generate"])
def test_json(client, call):
    question = {"messages": MESSAGES} if call == "chat" else {"prompt": QUESTION}
    reply = getattr(client, call)(
        model=MODEL, format="json", options=options(seed=5, limit=120), **question
    )
    text = reply.message.content if call == "chat" else reply.response
    is_cut = reply.done_reason == "length"
    assert isinstance(from_json(text, allow_partial="trailing-strings" if is_cut else False), dict)


def test_what_cannot_be_enforced_is_refused_by_name(client, starter):
    with pytest.raises(ollama.ResponseError, match="format.*uniqueItems") as caught:
        client.chat(
            model=MODEL, messages=MESSAGES, format={"type": "array", "uniqueItems": True}
        )
    assert caught.value.status_code == 400
    # The client has no way to say this.
    refused = httpx.post(
        f"{starter.url}/api/chat", json={"model": MODEL, "messages": MESSAGES, "format": "yaml"}
    )
    assert refused.status_code == 400
    assert "yaml" in refused.json()["error"]
