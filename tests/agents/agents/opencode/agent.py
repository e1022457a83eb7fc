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
    model = {"tool_call": True, "limit": {"context": 32768, "output": 4096}}
    provider = {
        "npm": PROVIDERS[run.wire],
        "options": {"baseURL": run.openai_url, "apiKey": "local"},
        "models": {run.model: model},
    }
    return {
        "provider": {"local": provider},
        "model": f"local/{run.model}",
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
