"""Ranking by a real model, as Jina, Cohere and vLLM have it."""

import cohere
import httpx
import litellm
import pytest
from harness.encoders import ANSWER, CHAT, DOCUMENTS, EMBEDDER, NO_ANSWER, QUERY, RERANKER

TOO_LONG = "Berlin " * 3000


@pytest.fixture(scope="module")
def rank(encoders):
    """A request, and the status and body it is answered with."""

    def rank(path="/v1/rerank", **options):
        body = {"model": RERANKER, "query": QUERY, "documents": DOCUMENTS} | options
        reply = httpx.post(f"{encoders.url}{path}", json=body, timeout=60)
        return reply.status_code, reply.json()

    return rank


def assert_right(results):
    """The document with the answer is clearly first, that about something else clearly last."""
    assert [result["index"] for result in results] == [ANSWER, 0, NO_ANSWER]
    scores = [result["relevance_score"] for result in results]
    assert scores[0] > 0.9
    assert scores[2] < 0.1
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("path", ["/v1/rerank", "/v1/reranking", "/rerank", "/v2/rerank"])
def test_plain(rank, path):
    status, reply = rank(path)
    assert status == 200
    assert_right(reply["results"])
    assert reply["model"] == RERANKER
    assert reply["id"]
    assert reply["usage"]["total_tokens"] == reply["usage"]["prompt_tokens"] > 50
    assert all("document" not in result for result in reply["results"])


def test_objects_and_documents_in_the_reply(rank):
    documents = [{"text": text, "page": page} for page, text in enumerate(DOCUMENTS)]
    status, reply = rank(documents=documents, top_n=1, return_documents=True)
    assert status == 200
    [result] = reply["results"]
    assert result["index"] == ANSWER
    assert result["document"]["text"] == DOCUMENTS[ANSWER]


def test_long_documents_are_cut_unless_told_not_to(rank):
    status, reply = rank(documents=[TOO_LONG, *DOCUMENTS], top_n=1)
    assert status == 200
    assert reply["results"][0]["index"] == ANSWER + 1
    status, reply = rank(documents=[DOCUMENTS[0], TOO_LONG], truncation=False)
    assert status == 400
    assert reply["error"]["param"] == "documents[1]"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"documents": []}, "documents"),
        ({"documents": ["a", 1]}, "documents[1]"),
        ({"documents": ["a", TOO_LONG], "max_chunks_per_doc": 10}, "documents[1]"),
        ({"model": EMBEDDER}, "model"),
        ({"model": CHAT}, "model"),
    ],
)
def test_what_cannot_be_had_is_named(rank, options, param):
    status, reply = rank(**options)
    assert status == 400
    assert reply["error"]["param"] == param


def test_cohere(encoders):
    client = cohere.ClientV2(api_key="unused", base_url=encoders.url)
    reply = client.rerank(model=RERANKER, query=QUERY, documents=DOCUMENTS)
    assert_right([result.model_dump() for result in reply.results])
    with pytest.raises(cohere.BadRequestError):
        client.rerank(model=EMBEDDER, query=QUERY, documents=DOCUMENTS)


async def test_cohere_async(encoders):
    client = cohere.AsyncClientV2(api_key="unused", base_url=encoders.url)
    reply = await client.rerank(model=RERANKER, query=QUERY, documents=DOCUMENTS, top_n=2)
    assert [result.index for result in reply.results] == [ANSWER, 0]


def test_cohere_of_old(encoders):
    client = cohere.Client(api_key="unused", base_url=encoders.url)
    reply = client.rerank(
        model=RERANKER, query=QUERY, documents=DOCUMENTS, top_n=1, return_documents=True
    )
    [result] = reply.results
    assert result.index == ANSWER
    assert result.document.text == DOCUMENTS[ANSWER]


@pytest.mark.parametrize(
    ("provider", "path"), [("hosted_vllm", "/v1"), ("jina_ai", ""), ("cohere", "")]
)
def test_litellm(encoders, provider, path):
    reply = litellm.rerank(
        model=f"{provider}/{RERANKER}",
        query=QUERY,
        documents=DOCUMENTS,
        top_n=3,
        api_base=f"{encoders.url}{path}",
        api_key="unused",
    )
    assert_right(reply.results)
