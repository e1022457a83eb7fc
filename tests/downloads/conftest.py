"""The hub double as a program, and Hugging Face's client pointed at it."""

import json
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest
from huggingface_hub import HfApi

import models


class Double:
    def __init__(self, url: str) -> None:
        self.url = url
        self.api = HfApi(endpoint=url, token=False)

    def behave(self, **behaviour: object) -> None:
        """Misbehaves like this from now on; nothing is a hub that works."""
        self._send("PUT", "/double/behaviour", behaviour)

    def commit(self, repository: str, path: str, text: str) -> str:
        """Adds a commit and returns its name."""
        change = {"repository": repository, "path": path, "text": text}
        return self._send("POST", "/double/commits", change)

    def requests(self) -> list[dict]:
        with urllib.request.urlopen(self.url + "/double/requests") as response:
            return json.load(response)

    def _send(self, method: str, path: str, body: object) -> object:
        request = urllib.request.Request(
            self.url + path,
            data=json.dumps(body).encode(),
            method=method,
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repositories")
    models.llama(root / "mlx-community" / "tiny-llama", hidden=64, seed=1)
    models.llama(root / "mlx-community" / "wide-llama", hidden=512, seed=2)
    models.llama(root / "someone" / "gated-llama", hidden=16, seed=3, is_gated=True)
    return root


@pytest.fixture
def double(folder: Path):
    program = os.environ["MACMLX_HUB_DOUBLE"]
    process = subprocess.Popen([program, str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        yield Double(process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The client keeps nothing between tests, waits little, and keeps what it has of small files."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 3)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1 << 16)
    return tmp_path / "cache"
