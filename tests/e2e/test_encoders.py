"""Encoders beside the model that chats: what commands say of them, and that neither disturbs the
other."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest
from conftest import MODEL, Server, macmlx, raw_json
from harness.encoders import ALL, ANSWER, DOCUMENTS, EMBEDDER, QUERY, RERANKER, dot

TEXTS = [
    " ".join(["river", "stone", "market", "music", "house"][: 1 + length % 5] * (1 + length // 3))
    for length in range(60)
]


@pytest.fixture(scope="module")
def library(home, tmp_path_factory) -> Path:
    """A data folder with the starter model and real encoders."""
    folder = tmp_path_factory.mktemp("library")
    models = folder / "data" / "models"
    for name in (MODEL, *ALL):
        owned = home / "data" / "models" if name == MODEL else Path(os.environ["MACMLX_ENCODERS"])
        (models / name).parent.mkdir(parents=True, exist_ok=True)
        (models / name).symlink_to(owned / name)
    return folder


@pytest.fixture(scope="module")
def running(library):
    server = Server(library)
    yield server
    assert server.stop() == 0


@pytest.fixture
def client(running) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key="unused", max_retries=0, timeout=300)


def chat(client) -> str:
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "Write about the sea."}],
        max_tokens=40,
        temperature=0,
    )
    return answer.choices[0].message.content


def embed(client, texts):
    return [item.embedding for item in client.embeddings.create(model=EMBEDDER, input=texts).data]


def loaded(library) -> dict[str, str]:
    models = json.loads(macmlx(library, "ps", "--json").stdout)["models"]
    return {model["id"]: model["task"] for model in models}


def test_commands_say_what_a_model_is_for(library):
    listed = json.loads(macmlx(library, "list", "--json").stdout)["models"]
    tasks = {model["id"]: model["task"] for model in listed}
    assert tasks == {MODEL: "generate", RERANKER: "rerank"} | {
        name: "embed" for name in ALL if name != RERANKER
    }
    lengths = {model["id"]: model["context_length"] for model in listed}
    assert (lengths[EMBEDDER], lengths[RERANKER]) == (256, 512)
    assert "embed" in macmlx(library, "show", EMBEDDER).stdout


def test_nobody_chats_with_an_encoder(library, running, client):
    said = macmlx(library, "run", EMBEDDER, "hello")
    assert said.returncode != 0
    assert EMBEDDER in said.stderr and "embeddings" in said.stderr
    assert loaded(library) == {}
    with pytest.raises(openai.BadRequestError, match=RERANKER):
        client.chat.completions.create(
            model=RERANKER, messages=[{"role": "user", "content": "hello"}]
        )
    with pytest.raises(openai.BadRequestError, match=MODEL):
        client.embeddings.create(model=MODEL, input="hello")
    assert loaded(library) == {}


def test_a_chat_and_a_library_do_not_disturb_each_other(library, client):
    answer, vectors = chat(client), embed(client, TEXTS)
    with ThreadPoolExecutor() as pool:
        futures = [pool.submit(embed, client, TEXTS) for _ in range(2)]
        assert chat(client) == answer
        for future in futures:
            for one, other in zip(future.result(), vectors, strict=True):
                assert dot(one, other) > 0.9999
    assert loaded(library) == {MODEL: "generate", EMBEDDER: "embed"}


def test_names_that_nobody_knows_go_to_a_model_for_the_task(running, client):
    chat(client)
    embed(client, ["hello"])
    assert client.embeddings.create(model="text-embedding-3-small", input="x").model == EMBEDDER
    answered = client.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": "hello"}], max_tokens=1
    )
    assert answered.model == MODEL
    request = {"model": "rerank-v3.5", "query": QUERY, "documents": DOCUMENTS}
    status, ranked = raw_json(running, "POST", "/v1/rerank", request)
    assert status == 200 and ranked["model"] == RERANKER
    assert ranked["results"][0]["index"] == ANSWER


def test_encoders_leave_one_by_one(library, running, client):
    chat(client)
    embed(client, ["hello"])
    status, _ = raw_json(running, "POST", "/api/embed", {"model": EMBEDDER, "input": [], "keep_alive": 0})
    assert status == 200
    assert EMBEDDER not in loaded(library)
    assert MODEL in loaded(library)
