"""aider: chat completions, Anthropic messages, and what it speaks to Ollama and to LM Studio.

It has no tools: the file is in its prompt and the edit is a block of text in the answer.
"""

import json

from driver.agent import Agent, Launch, Run
from driver.scenario import AFTER, BEFORE, FILE, FINAL

ANSWER = f"""{FINAL}

{FILE}
```
<<<<<<< SEARCH
{BEFORE}
=======
{AFTER}
>>>>>>> REPLACE
```
"""


def launch(run: Run) -> Launch:
    model, env = {
        "chat": (
            f"openai/{run.model}",
            {"OPENAI_API_BASE": run.openai_url, "OPENAI_API_KEY": "local"},
        ),
        "anthropic": (
            "anthropic/claude-sonnet-4-5",
            {"ANTHROPIC_API_BASE": run.url, "ANTHROPIC_API_KEY": "local"},
        ),
        "ollama": (f"ollama_chat/{run.model}", {"OLLAMA_API_BASE": run.url}),
        "lmstudio": (
            f"lm_studio/{run.model}",
            {"LM_STUDIO_API_BASE": run.openai_url, "LM_STUDIO_API_KEY": "local"},
        ),
    }[run.wire]
    settings = []
    if run.wants_short_answer:
        # A limit of tokens would be an error to it. White space it leaves out for Anthropic.
        settings = [{"name": "aider/extra_params", "extra_params": {"stop": ["."]}}]
    # JSON is YAML.
    file = run.write(run.home / "models.yml", json.dumps(settings))
    return Launch(
        [
            run.installed.python_program("aider"),
            *("--model", model),
            *("--edit-format", "diff"),
            *("--model-settings-file", str(file)),
            "--no-check-update",
            "--no-analytics",
            "--no-show-model-warnings",
            "--yes-always",
            "--no-git",
            "--no-pretty",
            *("--message", run.prompt),
            FILE,
        ],
        # It asks the outside for prices otherwise.
        env | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )


AGENT = Agent(
    package="aider-chat",
    wires=("chat", "anthropic", "ollama", "lmstudio"),
    launch=launch,
    answer=ANSWER,
    says_context_length=("has hit a token limit",),
)
