"""pi: chat completions, Anthropic messages, responses; a provider in `models.json`."""

from driver.agent import Agent, Call, Launch, Run
from driver.scenario import AFTER, BEFORE

PACKAGE = "@earendil-works/pi-coding-agent"
APIS = {
    "chat": "openai-completions",
    "anthropic": "anthropic-messages",
    "responses": "openai-responses",
}


def launch(run: Run) -> Launch:
    provider = {
        "baseUrl": run.url if run.wire == "anthropic" else run.openai_url,
        "api": APIS[run.wire],
        "apiKey": "local",
        "models": [
            {
                "id": run.model,
                "name": run.model,
                "reasoning": True,
                "input": ["text"],
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
                "contextWindow": 32768,
                "maxTokens": 64 if run.wants_short_answer else 4096,
            }
        ],
    }
    run.write(run.home / ".pi/agent/models.json", {"providers": {"local": provider}})
    # It says nothing of a prompt that is too long when it tries to shorten the conversation.
    run.write(run.home / ".pi/agent/settings.json", {"compaction": {"enabled": False}})
    return Launch(
        [
            run.installed.program(PACKAGE, "pi"),
            *("--provider", "local", "--model", run.model),
            *("-p", run.prompt),
        ],
        {"PI_OFFLINE": "1"},
    )


AGENT = Agent(
    package=PACKAGE,
    wires=("chat", "anthropic", "responses"),
    launch=launch,
    calls=lambda file: [
        Call("read", {"path": str(file)}),
        Call("edit", {"path": str(file), "edits": [{"oldText": BEFORE, "newText": AFTER}]}),
    ],
)
