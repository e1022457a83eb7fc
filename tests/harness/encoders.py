"""Fixtures for tests against real encoders: two embedding models and a reranker."""

import math
import os
from pathlib import Path

import pytest

from . import playback
from .program import Server

EMBEDDER = "sentence-transformers/all-MiniLM-L6-v2"
OTHER_EMBEDDER = "BAAI/bge-small-en"
RERANKER = "cross-encoder/ms-marco-MiniLM-L-12-v2"
ALL = (EMBEDDER, OTHER_EMBEDDER, RERANKER)
# It generates; its weights are never needed.
CHAT = playback.MODEL

CAT = "A cat sleeps on the sofa."
KITTEN = "The kitten is napping on the couch."
STOCKS = "Stock markets fell sharply today."

QUERY = "How many people live in Berlin?"
DOCUMENTS = [
    "Berlin is well known for its museums.",
    "Berlin had a population of 3,520,031 registered inhabitants in 2016.",
    "A kitten needs to be fed four times a day.",
]
ANSWER = 1
NO_ANSWER = 2


def make_home(folder: Path, names=ALL) -> Path:
    """A data folder with encoders, and a model that generates."""
    home = playback.make_home(folder)
    for name in names:
        link = home / "data/models" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(Path(os.environ["MACMLX_ENCODERS"]) / name)
    return home


@pytest.fixture(scope="session")
def encoders(tmp_path_factory):
    server = Server(make_home(tmp_path_factory.mktemp("encoders")))
    yield server
    assert server.stop() == 0


def dot(one, other) -> float:
    """The cosine, for vectors of length 1."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def mean_the_right_thing(cat, kitten, stocks):
    """Whether vectors of the three texts are of length 1 and lie as their texts do."""
    for vector in (cat, kitten, stocks):
        assert math.isclose(dot(vector, vector), 1, abs_tol=1e-4)
    assert dot(cat, kitten) > 0.6
    assert dot(cat, kitten) > dot(cat, stocks) + 0.2
