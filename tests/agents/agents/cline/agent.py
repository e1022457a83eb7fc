"""Cline: chat completions, Anthropic messages, and what it speaks to Ollama and to LM Studio."""

from driver.agent import Agent, Call, Launch, Run
from driver.scenario import AFTER, BEFORE

PACKAGE = "cline"
PROVIDERS = {
    "chat": "openai-compatible",
    "anthropic": "anthropic",
    "ollama": "ollama",
    "lmstudio": "lmstudio",
}


def launch(run: Run) -> Launch:
    provider = PROVIDERS[run.wire]
    settings = {
        "provider": provider,
        "apiKey": "local",
        "model": run.model,
        "baseUrl": run.openai_url,
    }
    # An entry that lacks any of these is passed over.
    entry = {
        "settings": settings,
        "updatedAt": "2026-01-01T00:00:00.000Z",
        "tokenSource": "manual",
    }
    run.write(
        run.home / ".cline/data/settings/providers.json",
        {
            "version": 1,
            "lastUsedProvider": provider,
            "modes": {},
            "providers": {provider: entry},
        },
    )
    return Launch(
        [run.installed.program(PACKAGE, "cline"), "-P", provider, "-m", run.model, run.prompt]
    )


AGENT = Agent(
    package=PACKAGE,
    wires=("chat", "anthropic", "ollama", "lmstudio"),
    launch=launch,
    calls=lambda file: [
        Call("read_files", {"files": [{"path": str(file)}]}),
        Call("editor", {"path": str(file), "old_text": BEFORE, "new_text": AFTER}),
    ],
    fixed_ports={"ollama": 11434, "lmstudio": 1234},
)
