"""The program: one command, or a server that runs."""

import os
import re
import select
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

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
