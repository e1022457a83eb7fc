"""Claude Code: Anthropic messages."""

from driver.agent import Agent, Call, Launch, Run
from driver.scenario import AFTER, BEFORE

PACKAGE = "@anthropic-ai/claude-code"


def launch(run: Run) -> Launch:
    return Launch(
        [
            run.installed.program(PACKAGE, "claude"),
            *("-p", run.prompt),
            *("--allowedTools", "Read,Edit"),
        ],
        {
            "ANTHROPIC_BASE_URL": run.url,
            "ANTHROPIC_AUTH_TOKEN": "local",
            "ANTHROPIC_MODEL": run.model,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": run.model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    )


AGENT = Agent(
    package=PACKAGE,
    wires=("anthropic",),
    launch=launch,
    calls=lambda file: [
        Call("Read", {"file_path": str(file)}),
        Call(
            "Edit",
            {"file_path": str(file), "old_string": BEFORE, "new_string": AFTER},
        ),
    ],
    says_context_length=("Prompt is too long",),
)
