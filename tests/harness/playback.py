"""Fixtures for tests against written answers, which come from a script beside the tests."""

import os
import shutil
from pathlib import Path

import pytest

from .program import Server

MODEL = "test/qwen3-played"
SCRIPT = Path(__file__).parent.parent / "sdk/script.json"


def make_home(folder: Path) -> Path:
    """A data folder with the model whose answers are played."""
    model = folder / "data/models" / MODEL
    model.parent.mkdir(parents=True)
    shutil.copytree(os.environ["MACMLX_PLAYBACK_MODEL"], model)
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    home = make_home(tmp_path_factory.mktemp("played"))
    # Strict, so that clients are seen to meet an unknown model.
    server = Server(home, "--playback", str(SCRIPT), "--unknown-models", "refuse")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def guarded_server(tmp_path_factory):
    """One that asks for a key."""
    home = make_home(tmp_path_factory.mktemp("guarded"))
    server = Server(home, "--playback", str(SCRIPT), "--api-key", "secret-key")
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def openai_url(server) -> str:
    return f"{server.url}/v1"
