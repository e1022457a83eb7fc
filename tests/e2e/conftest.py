"""Starts the real `macmlx serve` with the starter model, once for all tests."""

import os
from pathlib import Path

import openai
import pytest
from harness.http import raw, raw_json
from harness.program import Server, macmlx

__all__ = ["MODEL", "Server", "macmlx", "raw", "raw_json"]

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Path:
    """A data folder with the starter model, imported from its GGUF file by the program itself."""
    home = tmp_path_factory.mktemp("home")
    imported = macmlx(home, "import", os.environ["MACMLX_STARTER_GGUF"], "--name", MODEL)
    assert imported.returncode == 0, imported.stderr
    return home


@pytest.fixture(scope="session")
def server(home):
    server = Server(home, "--model", MODEL)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def client(server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0, timeout=300)


@pytest.fixture
def async_client(server) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="unused", max_retries=0, timeout=300
    )
