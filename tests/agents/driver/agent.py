"""What the harness must know of an agent; each one's is in `agents/<name>/agent.py`."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from driver import scenario


@dataclass(frozen=True)
class Installed:
    """An agent on this disk."""

    folder: Path
    node: Path

    def program(self, package: str, name: str) -> str:
        """A program of an npm package; its own entry, for some are only there after the install."""
        root = self.folder / "node_modules" / package
        programs = json.loads((root / "package.json").read_text())["bin"]
        return str(root / (programs if isinstance(programs, str) else programs[name]))

    def python_program(self, name: str) -> str:
        return str(self.folder / "bin" / name)


@dataclass(frozen=True)
class Run:
    """One call of an agent: what it may use."""

    wire: str
    url: str
    model: str
    home: Path
    work: Path
    prompt: str
    installed: Installed
    # Bounds the answer of a model that may never come to an end.
    wants_short_answer: bool = False

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    def write(self, path: Path, content: object) -> Path:
        """Writes a configuration: JSON unless it is text."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return path


@dataclass(frozen=True)
class Launch:
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A tool call that the model makes."""

    name: str
    arguments: dict


@dataclass(frozen=True)
class Agent:
    """An agent and how it is driven.

    `wires` are the formats it speaks. `calls` are the tool calls by which a model reads the file
    and edits it, given the path of the file; an agent without tools has `answer` instead: the text
    by which a model edits it.
    """

    package: str
    wires: tuple[str, ...]
    launch: Callable[[Run], Launch]
    calls: Callable[[Path], list[Call]] | None = None
    answer: str | None = None
    # Turns for what the agent asks besides, ahead of the others.
    side_turns: tuple[dict, ...] = ()
    # What the user reads, in place of our message, when the prompt is too long.
    says_context_length: tuple[str, ...] = ()
    # Ports that a wire format of the agent insists on.
    fixed_ports: dict[str, int] = field(default_factory=dict)

    @property
    def has_tools(self) -> bool:
        return self.calls is not None

    def script(self, file: Path) -> dict:
        """What the played model says for the agent to read `file`, edit it and finish."""
        if self.calls is None:
            turns = [{"when": {"message_contains": scenario.BEFORE}, "say": self.answer}]
            return {"turns": [*self.side_turns, *turns]}
        calls = self.calls(file)
        turns = [
            {
                "when": {"tool_offered": call.name, "tool_results": index}
                # The edit is made only when the model has seen what was read.
                | ({"message_contains": scenario.BEFORE} if index else {}),
                "say": scenario.call(call.name, call.arguments),
            }
            for index, call in enumerate(calls)
        ]
        turns += [
            {"when": {"tool_results": len(calls)}, "say": scenario.FINAL},
            {"when": {"has_tools": False}, "say": scenario.TITLE},
        ]
        return {"turns": [*self.side_turns, *turns]}
