"""Codex: responses, the only format it has."""

from driver.agent import Agent, Call, Launch, Run
from driver.scenario import AFTER, BEFORE

PACKAGE = "@openai/codex"
PROVIDER = "model_providers.local"


def launch(run: Run) -> Launch:
    settings = {
        "model_provider": "local",
        f"{PROVIDER}.name": "local",
        f"{PROVIDER}.base_url": run.openai_url,
        f"{PROVIDER}.wire_api": "responses",
    }
    command = [run.installed.program(PACKAGE, "codex"), "exec", "--skip-git-repo-check"]
    for name, value in settings.items():
        command += ["-c", f'{name}="{value}"']
    command += ["-m", run.model, "--dangerously-bypass-approvals-and-sandbox", run.prompt]
    return Launch(command)


AGENT = Agent(
    package=PACKAGE,
    wires=("responses",),
    launch=launch,
    # It has a shell and no tool for files, unless it knows the model.
    calls=lambda file: [
        Call("exec_command", {"cmd": f"cat {file}"}),
        Call("exec_command", {"cmd": f"sed -i.bak 's/{BEFORE}/{AFTER}/' {file}"}),
    ],
    says_context_length=("ran out of room in the model's context window",),
)
