"""Embeddings and reranking: our server over HTTP against sentence-transformers in its own process.

Both get the same texts in the same batches, one after the other, so that noise of the machine meets
both. What they answer must agree.
"""

import http.client
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import servers

TEXTS = Path(__file__).parent.parent / "tests/encoders"
sys.path.insert(0, str(TEXTS))
from sentences import rankings, texts  # noqa: E402

EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
RERANKER = "cross-encoder/ms-marco-MiniLM-L-12-v2"
BATCHES = (1, 8, 64)
COSINE = 0.995


class Peer:
    """A process of sentence-transformers."""

    def __init__(self, python: Path, folder: Path):
        self.process = subprocess.Popen(
            [python, Path(__file__).with_name("encoders_peer.py"), folder / EMBEDDER, folder / RERANKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, request: dict) -> dict:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)


def post(server: servers.Server, path: str, body: dict) -> tuple[dict, float]:
    """The reply and the seconds that it took, as a client sees them."""
    started = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    reply = connection.getresponse()
    text = reply.read()
    seconds = time.perf_counter() - started
    connection.close()
    if reply.status != 200:
        raise RuntimeError(f"{path}: {reply.status} {text!r}")
    return json.loads(text), seconds


def embed(server: servers.Server, peer: Peer, inputs: list[str]) -> dict:
    reply, seconds = post(server, "/v1/embeddings", {"model": EMBEDDER, "input": inputs})
    theirs = peer.ask({"texts": inputs})
    pairs = zip((each["embedding"] for each in reply["data"]), theirs["vectors"], strict=True)
    worst = min(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs)
    if worst < COSINE:
        raise RuntimeError(f"vectors differ: cosine {worst}")
    return {"ours": len(inputs) / seconds, "peer": len(inputs) / theirs["seconds"]}


def rerank(server: servers.Server, peer: Peer, query: str, documents: list[str]) -> dict:
    body = {"model": RERANKER, "query": query, "documents": documents}
    reply, seconds = post(server, "/v1/rerank", body)
    theirs = peer.ask({"query": query, "documents": documents})
    scores = {each["index"]: each["relevance_score"] for each in reply["results"]}
    for index, score in enumerate(theirs["scores"]):
        if abs(scores[index] - score) > 0.01:
            raise RuntimeError(f"scores differ: {scores[index]} and {score}")
    return {"ours": len(documents) / seconds, "peer": len(documents) / theirs["seconds"]}


def measure(server: servers.Server, peer: Peer, runs: int) -> dict:
    """For each kind of batch and run, texts or pairs a second on both sides."""
    # Sentences, not the odd inputs that the texts begin with: those have a token or two.
    sentences = [text for text in texts() if len(text) > 60]
    figures: dict[str, list[dict]] = {}
    try:
        for batch in BATCHES:
            for run in range(-1, runs):
                start = (run + 1) * batch % (len(sentences) - batch)
                figure = embed(server, peer, sentences[start : start + batch])
                if run >= 0:
                    figures.setdefault(f"embeddings, batches of {batch}", []).append(figure)
        for run in range(-1, runs):
            figure = rerank(server, peer, *rankings()[run + 1])
            if run >= 0:
                figures.setdefault("reranked pairs, 10 documents", []).append(figure)
    finally:
        server.stop()
        peer.stop()
    return figures


def report(figures: dict) -> list[str]:
    """Lines for people."""

    def median(name: str, side: str) -> float:
        return statistics.median(each[side] for each in figures[name])

    lines = [f"{'a second':40}{'macmlx':>12}{'sentence-tr.':>14}{'better by':>12}"]
    for name, measured in figures.items():
        ratio = statistics.median(each["ours"] / each["peer"] for each in measured)
        ours, peer = median(name, "ours"), median(name, "peer")
        lines.append(f"{name:40}{ours:12.1f}{peer:14.1f}{ratio:11.2f}x")
    return lines
