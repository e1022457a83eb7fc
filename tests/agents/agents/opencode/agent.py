"""opencode: chat completions, Anthropic messages, responses; each by another provider package."""

from driver.agent import Agent, Call, Launch, Run
from driver.scenario import AFTER, BEFORE

PACKAGE = "opencode-ai"
PROVIDERS = {
    "chat": "@ai-sdk/openai-compatible",
    "anthropic": "@ai-sdk/anthropic",
    "responses": "@ai-sdk/openai",
}


def configuration(run: Run) -> dict:
    """Also that of its descendants."""
    output = 64 if run.wants_short_answer else 4096
    model = {"tool_call": True, "limit": {"context": 32768, "output": output}}
    provider = {
        "npm": PROVIDERS[run.wire],
        "options": {"baseURL": run.openai_url, "apiKey": "local"},
        "models": {run.model: model},
    }
    return {
        "provider": {"local": provider},
        "model": f"local/{run.model}",
        # A prompt that is too long would have the model summarise an empty conversation.
        "compaction": {"auto": False},
        "autoupdate": False,
        "share": "disabled",
    }


def calls(file) -> list[Call]:
    """Also those of its descendants."""
    return [
        Call("read", {"filePath": str(file)}),
        Call("edit", {"filePath": str(file), "oldString": BEFORE, "newString": AFTER}),
    ]


def launch(run: Run) -> Launch:
    run.write(run.work / "opencode.json", configuration(run))
    return Launch(
        [run.installed.program(PACKAGE, "opencode"), "run", run.prompt],
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    )


AGENT = Agent(
    package=PACKAGE,
    wires=("chat", "anthropic", "responses"),
    launch=launch,
    calls=calls,
)
