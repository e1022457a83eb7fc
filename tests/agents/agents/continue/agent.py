"""Continue: chat completions and Anthropic messages, named by `provider` in its `config.yaml`."""

import json

from driver.agent import Agent, Call, Launch, Run
from driver.scenario import AFTER, BEFORE

PACKAGE = "@continuedev/cli"
PROVIDERS = {"chat": "openai", "anthropic": "anthropic"}


def launch(run: Run) -> Launch:
    configuration = {
        "name": "local",
        "version": "1.0.0",
        "schema": "v1",
        "models": [
            {
                "name": "local",
                "provider": PROVIDERS[run.wire],
                "model": run.model,
                "apiBase": run.openai_url,
                "apiKey": "local",
                "roles": ["chat"],
                "capabilities": ["tool_use"],
            }
        ],
    }
    # JSON is YAML.
    file = run.write(run.home / "config.yaml", json.dumps(configuration))
    return Launch(
        [run.installed.program(PACKAGE, "cn"), "--config", str(file), "--auto", "-p", run.prompt]
    )


AGENT = Agent(
    package=PACKAGE,
    wires=("chat", "anthropic"),
    launch=launch,
    calls=lambda file: [
        Call("Read", {"filepath": str(file)}),
        # What it offers in place of Edit to models that it thinks able.
        Call(
            "MultiEdit",
            {"file_path": str(file), "edits": [{"old_string": BEFORE, "new_string": AFTER}]},
        ),
    ],
)
