"""Starts the real `macmlx serve` with the starter model, once for all tests."""

import json
import os
import re
import select
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import openai
import pytest

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"
BINARY = os.environ["MACMLX_BIN"]
START_SECONDS = 180


def environment(home: Path) -> dict[str, str]:
    """Everything the program may write goes below `home`; no setting of the tester's leaks in."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | {"HOME": str(home), "MACMLX_HOME": str(home / "data")}


def macmlx(home: Path, *arguments: str, **options) -> subprocess.CompletedProcess:
    """Runs one command to its end and returns what it said."""
    options = {"timeout": 300, "stdin": subprocess.DEVNULL} | options
    if "input" in options:
        del options["stdin"]
    return subprocess.run(
        [BINARY, *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


class Server:
    """A running `macmlx serve`."""

    def __init__(self, home: Path, *arguments: str):
        self.home = home
        self.output = ""
        self.process = subprocess.Popen(
            [BINARY, "serve", "--port", "0", *arguments],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.url = self._wait_for_url()

    def _wait_for_url(self) -> str:
        deadline = time.monotonic() + START_SECONDS
        stream = self.process.stdout
        while time.monotonic() < deadline and self.process.poll() is None:
            if select.select([stream], [], [], 0.2)[0]:
                self.output += os.read(stream.fileno(), 65536).decode(errors="replace")
            found = re.search(r"http://127\.0\.0\.1:\d+", self.output)
            if found and self._is_healthy(found[0]):
                return found[0]
        self.stop()
        raise AssertionError(f"the server did not start:\n{self.output}")

    @staticmethod
    def _is_healthy(url: str) -> bool:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False

    def stop(self, with_signal: int = signal.SIGINT) -> int:
        """Asks the server to end and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        try:
            self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode


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


def raw(server, method: str, path: str, body: bytes = b"", headers=None):
    """One request as bytes; returns status, headers and body, also for errors."""
    request = urllib.request.Request(
        server.url + path,
        data=body if method == "POST" else None,
        method=method,
        headers={"content-type": "application/json"} | (headers or {}),
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            return reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as reply:
        return reply.code, reply.headers, reply.read()


def raw_json(server, method: str, path: str, body: object = None, headers=None):
    status, _, text = raw(server, method, path, json.dumps(body).encode(), headers)
    return status, json.loads(text)
