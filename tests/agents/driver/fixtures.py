"""Keeps what agents sent as requests of golden cases, without prose, paths and names of sessions."""

import json
import re
from pathlib import Path

from driver import scenario
from driver.verdict import generating
from driver.wire import Exchange

FILLER = (
    "Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut "
    "labore et dolore magna aliqua. "
)
# Shorter texts are no prose; longer ones say no more to a server than their first part.
PROSE_CHARACTERS = 60
KEPT_CHARACTERS = 200
# Members whose text people wrote for the model.
PROSE_KEYS = {"content", "text", "description", "instructions", "system", "output", "title"}
PROJECT = "/home/user/project"
# Ids that are drawn anew each time.
DRAWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{64}\b")


def write(record: Path, agent: str, wire: str, exchanges: list[Exchange], scratch: Path):
    """One folder a request: `<dialect>/client_<agent>_<wire>_<number>/request.json`."""
    scrubber = Scrubber(scratch)
    for number, exchange in enumerate(generating(exchanges)):
        folder = record / dialect(exchange.path) / f"client_{agent}_{wire}_{number}"
        folder.mkdir(parents=True, exist_ok=True)
        request = {"path": exchange.target, "body": scrubber.scrub(json.loads(exchange.body))}
        text = json.dumps(request, indent=2, ensure_ascii=False)
        (folder / "request.json").write_text(text + "\n")


def dialect(path: str) -> str:
    if path.startswith("/api/"):
        return "ollama"
    return "anthropic" if path.endswith("/messages") else "openai"


class Scrubber:
    """Makes values of one run the same on every machine and at every time: filler for prose, one
    project folder for paths, and counted ids, alike where they were alike."""

    def __init__(self, scratch: Path):
        # The work folder of any run, then whatever else lies below the scratch folder.
        self.work = re.compile(rf"{re.escape(str(scratch))}/[\w-]+/work")
        self.scratch = re.compile(rf"{re.escape(str(scratch))}[\w./-]*")
        self.ids: dict[str, str] = {}

    def scrub(self, value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: self.scrub(member, name) for name, member in value.items()}
        if isinstance(value, list):
            return [self.scrub(member, key) for member in value]
        if not isinstance(value, str):
            return value
        value = self.work.sub(PROJECT, value)
        value = self.scratch.sub("/home/user", value)
        value = DRAWN.sub(self._counted, value)
        if key in PROSE_KEYS and len(value) > PROSE_CHARACTERS and not _is_ours(value):
            return _fill(value)
        return value

    def _counted(self, drawn: re.Match[str]) -> str:
        digits = re.sub("[0-9a-f]", "0", drawn[0])
        number = f"{len(self.ids) + 1:x}"
        return self.ids.setdefault(drawn[0], digits[: -len(number)] + number)


def _is_ours(text: str) -> bool:
    """What our own scenario says in few words, such as the file's text in a tool result."""
    return len(text) <= KEPT_CHARACTERS and (scenario.BEFORE in text or scenario.PROMPT in text)


def _fill(text: str) -> str:
    # Servers tell this line by its start and leave it out of the prompt.
    start = re.match(r"x-anthropic-billing-header: |<system-reminder>\n", text)
    start = start[0] if start else ""
    length = min(len(text), KEPT_CHARACTERS) - len(start)
    return start + (FILLER * (length // len(FILLER) + 1))[:length]
