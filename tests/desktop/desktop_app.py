"""One run of the desktop app, with its page under WebDriver."""

import json
import os
import socket
import subprocess
import urllib.request
from http.client import HTTPException
from pathlib import Path

from menu_bar import Item, MenuBar
from session import Session
from waiting import until
from webdriver import Browser

BINARY = os.environ["MACMLX_DESKTOP_BIN"]
DRIVER = os.environ["MACMLX_TAURI_DRIVER"]

# Asks through the door that the page has. `messages` are those of the answer, in order, each with
# the time when it came; `ended` resolves with the last one.
ASK = """
    const [method, path, body] = arguments_;
    const internals = window.__TAURI_INTERNALS__;
    const messages = [];
    const early = new Map();
    const ended = new Promise((resolve) => {
        const take = ({ index, message, end }) => {
            // The channel itself ends after the last message.
            if (end) return;
            early.set(index, { ...message, at: performance.now() });
            for (; early.has(messages.length); early.delete(messages.length - 1)) {
                messages.push(early.get(messages.length));
            }
            if (['end', 'failed'].includes(messages.at(-1)?.type)) resolve();
        };
        window.lastRequest = crypto.randomUUID();
        internals.invoke('door_request', {
            id: window.lastRequest,
            request: {
                method,
                path,
                headers: body === null ? [] : [['content-type', 'application/json']],
                body: body === null ? null : JSON.stringify(body),
            },
            onEvent: `__CHANNEL__:${internals.transformCallback(take)}`,
        });
    });
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class App:
    """The app in its window. It starts with its server off, which would listen at `port`."""

    def __init__(self, session: Session, menu_bar: MenuBar, port: int, *arguments: str):
        self.session = session
        self.port = port
        driver, native = free_port(), free_port()
        self._driver = subprocess.Popen(
            [DRIVER, "--port", str(driver), "--native-port", str(native)],
            env=session.environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            # Asked as WebDriver has it: the native one does not survive other guests on its port.
            until(lambda: is_ready(driver), "the drivers")
            self.browser = Browser(f"http://127.0.0.1:{driver}", BINARY, list(arguments))
        except BaseException:
            self._driver.terminate()
            raise
        self.browser.set_timeout(280)
        self.pid = until(lambda: pid_of(BINARY, session.home), "the app's process")
        self.menu_bar = menu_bar

    @property
    def tray(self) -> Item:
        return self.menu_bar.item(self.pid)

    def ask(self, method: str, path: str, body: object = None) -> list[dict]:
        """The messages of one answer through the in-process door."""
        return self.browser.run_async(f"{ASK} await ended; return messages;", method, path, body)

    def begin(self, method: str, path: str, body: object = None) -> None:
        """Asks, and goes on when the first piece of the answer is there."""
        wait = "while (messages.length < 2) await new Promise((r) => setTimeout(r, 10));"
        self.browser.run_async(f"{ASK} {wait}", method, path, body)

    def cancel(self) -> None:
        """Gives up what was begun last."""
        self.browser.run_async(
            "await window.__TAURI_INTERNALS__.invoke('door_cancel', { id: window.lastRequest });"
        )

    def json(self, method: str, path: str, body: object = None) -> object:
        messages = self.ask(method, path, body)
        assert messages[-1]["type"] == "end", messages
        text = "".join(message.get("text", "") for message in messages)
        assert messages[0]["status"] in range(200, 300), (messages[0], text)
        return json.loads(text)

    def status(self) -> dict:
        return self.json("GET", "/x/status")

    def is_alive(self) -> bool:
        return is_alive(self.pid)

    def close(self) -> None:
        """Ends what still runs."""
        if self.is_alive():
            os.kill(self.pid, 15)
            until(lambda: not self.is_alive(), "the app to end")
        self._driver.terminate()
        self._driver.wait(10)


def answers(port: int) -> bool:
    """Whether somebody listens at a port of this machine."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def is_ready(driver: int) -> bool:
    """Whether both drivers are there: the first passes on what the second says."""
    try:
        return get(driver, "/status")["value"]["ready"]
    except (OSError, HTTPException):
        return False


def get(port: int, path: str) -> object:
    """As curl would."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
        return json.load(reply)


def is_alive(pid: int) -> bool:
    """Whether a process is there and not just waiting to be noticed as ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def pid_of(binary: str, home: Path) -> int | None:
    """The process that runs a program in a home."""
    found = [pid for pid in processes(home) if is_program(pid, binary)]
    return found[0] if found else None


def processes(home: Path) -> list[int]:
    """All processes that were started with this home and live."""
    mark = f"\0HOME={home}\0".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            variables = (folder / "environ").read_bytes()
        except OSError:
            continue
        if mark in b"\0" + variables and is_alive(int(folder.name)):
            found.append(int(folder.name))
    return found


def is_program(pid: int, binary: str) -> bool:
    try:
        return Path(f"/proc/{pid}/exe").resolve() == Path(binary).resolve()
    except OSError:
        return False
