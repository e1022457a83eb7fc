"""llm: chat completions, Anthropic messages, Ollama; tools are Python functions that it is given."""

import json

from driver.agent import Agent, Call, Launch, Run
from driver.scenario import AFTER, BEFORE

FUNCTIONS = '''
from pathlib import Path

def read_file(path: str) -> str:
    """The text of a file."""
    return Path(path).read_text()

def replace_in_file(path: str, old: str, new: str) -> str:
    """Puts new text in the place of old text."""
    file = Path(path)
    text = file.read_text()
    if old not in text:
        raise ValueError("the old text is not in the file")
    file.write_text(text.replace(old, new))
    return "done"
'''


def launch(run: Run) -> Launch:
    settings = run.home / "llm"
    if run.wire == "chat":
        model, env = "local", {"OPENAI_API_KEY": "local"}
        entry = {
            "model_id": "local",
            "model_name": run.model,
            "api_base": run.openai_url,
            "supports_tools": True,
        }
        # JSON is YAML.
        run.write(settings / "extra-openai-models.yaml", json.dumps([entry]))
    elif run.wire == "ollama":
        model, env = f"ollama/{run.model}", {"OLLAMA_HOST": run.url}
    else:
        model = "claude-sonnet-4.5"
        env = {"ANTHROPIC_API_KEY": "local", "ANTHROPIC_BASE_URL": run.url}
    command = [run.installed.python_program("llm"), "-m", model]
    if run.wants_short_answer:
        limit = "num_predict" if run.wire == "ollama" else "max_tokens"
        command += ["-o", limit, "32"]
    command += ["--functions", str(run.write(run.home / "functions.py", FUNCTIONS))]
    return Launch([*command, run.prompt], env | {"LLM_USER_PATH": str(settings)})


AGENT = Agent(
    package="llm",
    wires=("chat", "anthropic", "ollama"),
    launch=launch,
    calls=lambda file: [
        Call("read_file", {"path": str(file)}),
        Call("replace_in_file", {"path": str(file), "old": BEFORE, "new": AFTER}),
    ],
)
