"""The kinds of run: what the server serves, what the agent is asked, what must come of it."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import quote

from harness import program

from driver import scenario, verdict
from driver.agent import Agent
from driver.sandbox import Outcome
from driver.wire import Exchange

PLAYED_MODEL = "Qwen/Qwen3-0.6B"
# Fewer than any first prompt has.
SHORT_CONTEXT_TOKENS = 64

# Tokens that an answer of the starter may have.
ANSWER_TOKENS = 64

# What our refusals say, in every dialect's words.
CONTEXT_LENGTH = re.compile("context|prompt is too long")


class Edit:
    """Written answers: the model reads the file by the agent's own tools, edits it and finishes."""

    name = "edit"
    model = PLAYED_MODEL
    prompt = scenario.PROMPT
    wants_short_answer = False
    limit_seconds = 180

    def __init__(self, playback_model: Path, home: Path):
        self.home = home
        target = home / "data/models" / PLAYED_MODEL
        if not target.exists():
            shutil.copytree(playback_model, target)

    def serve(self, agent: Agent, file: Path, folder: Path) -> list[str]:
        """Options of `macmlx serve`."""
        script = folder / "script.json"
        script.write_text(json.dumps(self.script(agent, file), indent=2))
        return ["--model", self.model, "--playback", str(script)]

    def script(self, agent: Agent, file: Path) -> dict:
        return agent.script(file)

    def faults(
        self, _agent: Agent, outcome: Outcome, exchanges: list[Exchange], file: Path
    ) -> list[str]:
        return verdict.edited(outcome, exchanges, file)


class Context(Edit):
    """The same with a context that no prompt fits in: the user must learn why nothing comes."""

    name = "context"

    def script(self, agent: Agent, file: Path) -> dict:
        return super().script(agent, file) | {"max_context": SHORT_CONTEXT_TOKENS}

    def faults(
        self, agent: Agent, outcome: Outcome, exchanges: list[Exchange], _file: Path
    ) -> list[str]:
        return verdict.told(outcome, exchanges, CONTEXT_LENGTH, agent.says_context_length)


class Starter:
    """The real engine with the starter model, whose template takes no tools and whose context is
    small: an agent whose prompt fits finishes a turn with its tools offered, and the user of another
    learns the numbers and which model to take."""

    name = "starter"
    prompt = scenario.QUESTION
    wants_short_answer = True
    # A prompt of some thousand tokens takes minutes where the cores are busy.
    limit_seconds = 600

    def __init__(self, gguf: Path, model: str, home: Path):
        self.model = model
        self.home = home
        home.mkdir(exist_ok=True)
        imported = program.macmlx(home, "import", str(gguf), "--name", model)
        if imported.returncode:
            raise RuntimeError(f"cannot import the starter model: {imported.stderr}")
        # Most agents do not bound an answer, and a small model may never come to an end of one.
        parameters = home / "data/model-params" / f"{quote(model, safe='')}.json"
        parameters.parent.mkdir(parents=True, exist_ok=True)
        parameters.write_text(json.dumps({"maxTokens": ANSWER_TOKENS}))

    def serve(self, _agent: Agent, _file: Path, _folder: Path) -> list[str]:
        return ["--model", self.model]

    def faults(
        self, agent: Agent, outcome: Outcome, exchanges: list[Exchange], _file: Path
    ) -> list[str]:
        if verdict.refused(exchanges, verdict.TOO_LONG):
            return verdict.told(outcome, exchanges, verdict.TOO_LONG, agent.says_context_length)
        return verdict.answered(outcome, exchanges, offers_tools=agent.has_tools)
