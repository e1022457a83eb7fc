"""Qwen Code: chat completions and Anthropic messages, chosen by the kind of login."""

from driver.agent import Agent, Call, Launch, Run
from driver.scenario import AFTER, BEFORE

PACKAGE = "@qwen-code/qwen-code"


def launch(run: Run) -> Launch:
    if run.wire == "chat":
        login, variables, url = "openai", "OPENAI", run.openai_url
    else:
        login, variables, url = "anthropic", "ANTHROPIC", run.url
    return Launch(
        [
            run.installed.program(PACKAGE, "qwen"),
            *("--auth-type", login),
            "--yolo",
            *("-p", run.prompt),
        ],
        {
            f"{variables}_API_KEY": "local",
            f"{variables}_BASE_URL": url,
            f"{variables}_MODEL": run.model,
        },
    )


AGENT = Agent(
    package=PACKAGE,
    wires=("chat", "anthropic"),
    launch=launch,
    calls=lambda file: [
        Call("read_file", {"file_path": str(file)}),
        Call("edit", {"file_path": str(file), "old_string": BEFORE, "new_string": AFTER}),
    ],
)
