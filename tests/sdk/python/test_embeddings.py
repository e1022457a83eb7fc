"""Embeddings by a real model, through `openai`, `langchain`, `ollama` and `litellm`."""

import asyncio
import struct

import httpx
import litellm
import ollama
import openai
import pytest
from harness.encoders import (
    CAT,
    CHAT,
    EMBEDDER,
    KITTEN,
    OTHER_EMBEDDER,
    RERANKER,
    STOCKS,
    dot,
    mean_the_right_thing,
)
from langchain_ollama import OllamaEmbeddings
from langchain_openai import OpenAIEmbeddings
from openai.types import CreateEmbeddingResponse
from pydantic import TypeAdapter

TEXTS = [CAT, KITTEN, STOCKS]
FEATURES = 384
TOO_LONG = "cat " * 3000


def single(vector):
    """Numbers of single precision, as all were before they were written down."""
    return struct.unpack(f"{len(vector)}f", struct.pack(f"{len(vector)}f", *vector))


def assert_near(one, other):
    assert dot(one, other) > 0.9999


@pytest.fixture(scope="module")
def client(encoders):
    return openai.OpenAI(base_url=f"{encoders.url}/v1", api_key="unused", max_retries=0)


@pytest.fixture
def async_client(encoders):
    return openai.AsyncOpenAI(base_url=f"{encoders.url}/v1", api_key="unused", max_retries=0)


def vectors(client, texts, **options):
    reply = client.embeddings.create(**{"model": EMBEDDER, "input": texts} | options)
    assert [data.index for data in reply.data] == list(range(len(reply.data)))
    return [data.embedding for data in reply.data]


@pytest.mark.parametrize("model", [EMBEDDER, OTHER_EMBEDDER, "all-MiniLM-L6-v2"])
def test_meaning(client, model):
    reply = client.embeddings.create(model=model, input=TEXTS)
    assert reply.object == "list"
    assert reply.model.endswith(model)
    assert reply.usage.prompt_tokens == reply.usage.total_tokens > 15
    found = [data.embedding for data in reply.data]
    assert {len(vector) for vector in found} == {FEATURES}
    if model == OTHER_EMBEDDER:
        # Its vectors all lie close together.
        assert dot(found[0], found[1]) > dot(found[0], found[2]) + 0.05
    else:
        mean_the_right_thing(*found)


def test_bytes_and_numbers_agree(client):
    # Unless told otherwise, the SDK asks for base64.
    from_bytes = vectors(client, TEXTS)
    numbers = vectors(client, TEXTS, encoding_format="float")
    for one, other in zip(from_bytes, numbers, strict=True):
        assert single(one) == single(other)
    raw = vectors(client, TEXTS, encoding_format="base64")
    assert all(isinstance(vector, str) for vector in raw)


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/v1/embeddings", {"input": TEXTS}, CreateEmbeddingResponse),
        ("/api/embed", {"input": TEXTS}, ollama.EmbedResponse),
        ("/api/embeddings", {"prompt": CAT}, ollama.EmbeddingsResponse),
    ],
)
def test_shapes(encoders, path, body, kind):
    reply = httpx.post(encoders.url + path, json={"model": EMBEDDER} | body)
    assert reply.status_code == 200
    # Strictly: no string where a number belongs.
    TypeAdapter(kind).validate_json(reply.text, strict=True)


def test_fewer_dimensions(client):
    whole = vectors(client, TEXTS)
    short = vectors(client, TEXTS, dimensions=64)
    assert {len(vector) for vector in short} == {64}
    mean_the_right_thing(*short)
    for cut, vector in zip(short, whole, strict=True):
        length = dot(vector[:64], vector[:64]) ** 0.5
        assert_near(cut, [feature / length for feature in vector[:64]])


def test_tokens_are_embedded_as_their_text(client, encoders):
    body = {"model": EMBEDDER, "prompt": CAT}
    tokenized = httpx.post(f"{encoders.url}/v1/tokenize", json=body).json()
    tokens = tokenized["tokens"]
    reply = client.embeddings.create(model=EMBEDDER, input=tokens)
    assert reply.usage.prompt_tokens == len(tokens)
    text = vectors(client, CAT)[0]
    assert_near(reply.data[0].embedding, text)
    for vector in vectors(client, [tokens, tokens]):
        assert_near(vector, text)


def test_a_batch_is_in_order(client):
    texts = [f"{word} " * count for count in (1, 40, 3, 17) for word in ("cat", "stock", "sea")]
    texts.insert(4, "")
    for text, vector in zip(texts, vectors(client, texts), strict=True):
        assert_near(vector, vectors(client, text)[0])


async def test_many_at_once(async_client):
    async def embed(index):
        text = TEXTS[index % 3]
        reply = await async_client.embeddings.create(model=EMBEDDER, input=text)
        return reply.data[0].embedding

    found = await asyncio.gather(*(embed(index) for index in range(12)))
    mean_the_right_thing(*found[:3])
    for index, vector in enumerate(found):
        assert_near(vector, found[index % 3])


def test_no_dimensions_are_the_models_own(client):
    whole = vectors(client, CAT)[0]
    assert_near(vectors(client, CAT, dimensions=0)[0], whole)


def test_texts_that_are_too_long(client):
    with pytest.raises(openai.BadRequestError) as caught:
        vectors(client, [CAT, TOO_LONG])
    assert caught.value.param == "input[1]"
    assert "3002" in caught.value.message
    cut = vectors(client, TOO_LONG, extra_body={"truncate_prompt_tokens": -1})[0]
    assert_near(cut, vectors(client, TOO_LONG, extra_body={"truncate": "END"})[0])


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"input": []}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": [10**7]}, "input"),
        ({"dimensions": FEATURES + 1}, "dimensions"),
        ({"dimensions": 1.5}, "dimensions"),
        ({"model": CHAT}, "model"),
        ({"model": RERANKER}, "model"),
        ({"extra_body": {"input_type": "query"}}, "input_type"),
    ],
)
def test_what_cannot_be_had_is_named(client, options, param):
    with pytest.raises(openai.BadRequestError) as caught:
        vectors(client, options.pop("input", CAT), **options)
    assert caught.value.param == param


def test_models_are_refused_by_name(client):
    with pytest.raises(openai.BadRequestError, match=f"`{CHAT}` generates text"):
        vectors(client, CAT, model=CHAT)
    with pytest.raises(openai.BadRequestError, match=f"`{EMBEDDER}` makes embeddings"):
        client.chat.completions.create(
            model=EMBEDDER, messages=[{"role": "user", "content": CAT}]
        )
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no/such")


def openai_embeddings(url):
    return OpenAIEmbeddings(
        model=EMBEDDER,
        base_url=f"{url}/v1",
        api_key="unused",
        # It would fetch OpenAI's vocabulary.
        check_embedding_ctx_length=False,
    )


def ollama_embeddings(url):
    return OllamaEmbeddings(model=EMBEDDER, base_url=url)


@pytest.mark.parametrize("make", [openai_embeddings, ollama_embeddings])
async def test_langchain(make, encoders, client):
    embeddings = make(encoders.url)
    found = embeddings.embed_documents(TEXTS)
    mean_the_right_thing(*found)
    assert_near(embeddings.embed_query(CAT), found[0])
    assert_near((await embeddings.aembed_documents(TEXTS))[2], found[2])
    assert_near(found[1], vectors(client, KITTEN)[0])


def test_litellm(encoders):
    reply = litellm.embedding(
        model=f"openai/{EMBEDDER}", input=TEXTS, api_base=f"{encoders.url}/v1", api_key="unused"
    )
    mean_the_right_thing(*(data["embedding"] for data in reply.data))
    assert reply.usage.prompt_tokens > 15


@pytest.fixture(scope="module")
def ollama_client(encoders):
    return ollama.Client(host=encoders.url, timeout=60)


def test_ollama(ollama_client, client):
    reply = ollama_client.embed(model=EMBEDDER, input=TEXTS)
    mean_the_right_thing(*reply.embeddings)
    assert reply.model == EMBEDDER
    assert reply.prompt_eval_count > 15
    assert reply.total_duration > 0
    assert_near(reply.embeddings[0], vectors(client, CAT)[0])
    short = ollama_client.embed(model=EMBEDDER, input=TEXTS, dimensions=64)
    mean_the_right_thing(*short.embeddings)
    assert len(short.embeddings[0]) == 64
    old = ollama_client.embeddings(model=EMBEDDER, prompt=CAT)
    assert_near(old.embedding, reply.embeddings[0])


def test_ollama_cuts_long_texts_unless_told_not_to(ollama_client):
    reply = ollama_client.embed(model=EMBEDDER, input=TOO_LONG)
    assert 0 < reply.prompt_eval_count < 3000
    with pytest.raises(ollama.ResponseError) as caught:
        ollama_client.embed(model=EMBEDDER, input=TOO_LONG, truncate=False)
    assert caught.value.status_code == 400


def test_ollama_tells_embedders_apart(ollama_client):
    assert ollama_client.show(EMBEDDER).capabilities == ["embedding"]
    assert "completion" in ollama_client.show(CHAT).capabilities
    with pytest.raises(ollama.ResponseError, match=EMBEDDER):
        ollama_client.generate(model=EMBEDDER, prompt=CAT)
    with pytest.raises(ollama.ResponseError, match=CHAT):
        ollama_client.embed(model=CHAT, input=CAT)


def test_ollama_loads_and_unloads(ollama_client):
    def is_loaded():
        return any(model.model == EMBEDDER for model in ollama_client.ps().models)

    assert ollama_client.embed(model=EMBEDDER, input=[]).embeddings == []
    assert is_loaded()
    ollama_client.embed(model=EMBEDDER, input=[], keep_alive=0)
    assert not is_loaded()
