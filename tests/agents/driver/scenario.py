"""The task that every agent is given, and what a model says for it."""

import json

FILE = "crane.txt"
BEFORE = "The harbour crane is red."
AFTER = "The harbour crane is green."
CONTENT = f"Painting plan\n\n{BEFORE}\n"
WANTED = f"Painting plan\n\n{AFTER}\n"

PROMPT = f"Read {FILE} and paint the crane green in it."
QUESTION = "Say hello."
THOUGHT = "First I look at the file, then I change one word."
FINAL = "The painting plan has its new colour."
TITLE = "Painting plan"


def call(name: str, arguments: dict) -> str:
    """What a model of the Qwen3 family writes to call a tool."""
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<think>\n{THOUGHT}\n</think>\n\n<tool_call>\n{body}\n</tool_call>"
