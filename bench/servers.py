"""Starts either engine's server on a folder and measures it over HTTP, as a client would."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 600


@dataclass
class Generation:
    """What one streamed request looked like from outside."""

    first_token_seconds: float
    total_seconds: float
    completion_tokens: int
    prompt_tokens: int

    @property
    def decode_tokens_per_second(self) -> float:
        return (self.completion_tokens - 1) / (self.total_seconds - self.first_token_seconds)


class Server:
    """A server process on a free port; `model` is what requests must name."""

    def __init__(
        self,
        name: str,
        command: list[str],
        environment: dict[str, str],
        port: int,
        model: str,
        *,
        generates: bool = True,
    ):
        self.name, self.port, self.model = name, port, model
        started = time.perf_counter()
        self.log = open(os.devnull, "wb")
        self.process = subprocess.Popen(
            command, env=environment, stdout=self.log, stderr=self.log, start_new_session=True
        )
        self._wait_until_it_answers()
        if generates:
            # Until the first token: either engine may load lazily.
            self.complete("Hello", max_tokens=1)
        self.startup_seconds = time.perf_counter() - started

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode} at its start")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not start")

    def complete(self, prompt: str, max_tokens: int, **more) -> Generation:
        """Streams one greedy text completion of at most `max_tokens`; `more` are further fields."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        body = {
            "model": self.model,
            "prompt": prompt,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **more,
        }
        started = time.perf_counter()
        connection.request(
            "POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"}
        )
        reply = connection.getresponse()
        if reply.status != 200:
            raise RuntimeError(f"{self.name}: {reply.status} {reply.read()!r}")
        first = last = None
        chunks = 0
        usage = None
        for line in reply:
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            if any(choice.get("text") for choice in chunk.get("choices", [])):
                last = time.perf_counter()
                first = first or last
                chunks += 1
        connection.close()
        if first is None:
            raise RuntimeError(f"{self.name} produced no text")
        tokens = usage["completion_tokens"] if usage else chunks
        prompt_tokens = usage["prompt_tokens"] if usage else 0
        return Generation(first - started, last - started, tokens, prompt_tokens)

    def complete_together(self, prompts: list[str], max_tokens: int) -> float:
        """Aggregate tokens per second of several clients, from the first start to the last end."""
        done: list[Generation] = []
        failed: list[Exception] = []

        def one(prompt: str) -> None:
            try:
                done.append(self.complete(prompt, max_tokens))
            except Exception as error:  # noqa: BLE001 - handed to the caller below
                failed.append(error)

        threads = [threading.Thread(target=one, args=(prompt,)) for prompt in prompts]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        return sum(each.completion_tokens for each in done) / (time.perf_counter() - started)

    def peak_rss_bytes(self) -> int:
        """The most memory the process ever held."""
        if sys.platform == "linux":
            for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        out = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, text=True, check=True
        )
        return int(out.stdout) * 1024

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_ours(binary: Path, folder: Path, home: Path, *arguments: str) -> Server:
    """`macmlx serve` with `folder` as its only model."""
    models = home / "models" / "bench"
    models.mkdir(parents=True, exist_ok=True)
    link = models / folder.name
    if not link.exists():
        link.symlink_to(folder)
    port = free_port()
    model = f"bench/{folder.name}"
    environment = {**os.environ, "MACMLX_HOME": str(home)}
    command = [str(binary), "serve", "--port", str(port), "--model", model, *arguments]
    return Server("macmlx", command, environment, port, model)


def start_encoders(binary: Path, folder: Path, home: Path) -> Server:
    """`macmlx serve` with the models in `folder` and none that generates."""
    home.mkdir(parents=True, exist_ok=True)
    models = home / "models"
    if not models.exists():
        models.symlink_to(folder)
    port = free_port()
    environment = {**os.environ, "MACMLX_HOME": str(home)}
    command = [str(binary), "serve", "--port", str(port)]
    return Server("macmlx", command, environment, port, "", generates=False)


def start_peer(folder: Path) -> Server:
    """`mlx_lm.server` of this very Python environment, its prompt cache off."""
    port = free_port()
    command = [
        sys.executable, "-m", "mlx_lm", "server",
        "--model", str(folder), "--port", str(port), "--prompt-cache-size", "0",
    ]
    return Server("mlx-lm", command, dict(os.environ), port, str(folder))
