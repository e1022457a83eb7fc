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
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def write(record: Path, agent: str, wire: str, exchanges: list[Exchange], scratch: Path):
    """One folder a request: `<dialect>/client_<agent>_<wire>_<number>/request.json`."""
    for number, exchange in enumerate(generating(exchanges)):
        folder = record / dialect(exchange.path) / f"client_{agent}_{wire}_{number}"
        folder.mkdir(parents=True, exist_ok=True)
        request = {"path": exchange.target, "body": scrub(json.loads(exchange.body), scratch)}
        text = json.dumps(request, indent=2, ensure_ascii=False)
        (folder / "request.json").write_text(text + "\n")


def dialect(path: str) -> str:
    if path.startswith("/api/"):
        return "ollama"
    return "anthropic" if path.endswith("/messages") else "openai"


def scrub(value: object, scratch: Path, key: str = "") -> object:
    """The same value with filler for prose, one project folder for paths, and zeros for ids that
    are drawn anew each time."""
    if isinstance(value, dict):
        return {name: scrub(member, scratch, name) for name, member in value.items()}
    if isinstance(value, list):
        return [scrub(member, scratch, key) for member in value]
    if not isinstance(value, str):
        return value
    # The work folder of any run, then whatever else lies below the scratch folder.
    value = re.sub(rf"{re.escape(str(scratch))}/[\w-]+/work", PROJECT, value)
    value = re.sub(rf"{re.escape(str(scratch))}[\w./-]*", "/home/user", value)
    value = UUID.sub("00000000-0000-0000-0000-000000000000", value)
    if key in PROSE_KEYS and len(value) > PROSE_CHARACTERS and not _is_ours(value):
        return _fill(value)
    return value


def _is_ours(text: str) -> bool:
    """What our own scenario says in few words, such as the file's text in a tool result."""
    return len(text) <= KEPT_CHARACTERS and (scenario.BEFORE in text or scenario.PROMPT in text)


def _fill(text: str) -> str:
    # Servers tell this line by its start and leave it out of the prompt.
    start = re.match(r"x-anthropic-billing-header: |<system-reminder>\n", text)
    start = start[0] if start else ""
    length = min(len(text), KEPT_CHARACTERS) - len(start)
    return start + (FILLER * (length // len(FILLER) + 1))[:length]
