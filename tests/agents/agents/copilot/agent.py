"""GitHub Copilot CLI: chat completions, Anthropic messages, responses; offline, with no login."""

from driver.agent import Agent, Call, Launch, Run
from driver.scenario import AFTER, BEFORE

PACKAGE = "@github/copilot"


def launch(run: Run) -> Launch:
    env = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": run.openai_url,
        "COPILOT_PROVIDER_API_KEY": "local",
        "COPILOT_MODEL": run.model,
    }
    if run.wire == "anthropic":
        env |= {"COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_PROVIDER_BASE_URL": run.url}
    if run.wire == "responses":
        env["COPILOT_PROVIDER_WIRE_API"] = "responses"
    return Launch(
        [run.installed.program(PACKAGE, "copilot"), "-p", run.prompt, "--allow-all-tools"], env
    )


AGENT = Agent(
    package=PACKAGE,
    wires=("chat", "anthropic", "responses"),
    launch=launch,
    calls=lambda file: [
        Call("view", {"path": str(file)}),
        Call("edit", {"path": str(file), "old_str": BEFORE, "new_str": AFTER}),
    ],
    says_context_length=("rejected the prompt as too long",),
)
