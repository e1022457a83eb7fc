"""Which notation of reasoning and of tool calls real chat templates are seen to use."""

import json
import os
import pathlib
import subprocess

import pytest

import corpus

TEMPLATES = corpus.load(
    [pathlib.Path(path) for path in os.environ["MACMLX_TEMPLATE_WHEELS"].split(os.pathsep)],
    pathlib.Path(os.environ["MACMLX_TEMPLATE_NODE"]) / "node_modules")

# One or two of each family; what their models write is in their model cards.
EXPECTED = {
    "axolotl/command_a_tool_use": ("command_r7b", "command_r7b"),
    "axolotl/exaone4": ("think", "hermes"),
    "axolotl/falcon_h1": (None, "hermes"),
    "axolotl/gemma3": (None, None),
    "axolotl/llama4": (None, "llama3_json"),
    "axolotl/mistral_v3_tekken": (None, "mistral"),
    "axolotl/qwen_25": (None, "hermes"),
    "ollama-utils/command-r7b:7b": ("command_r7b", "command_r7b"),
    "ollama-utils/deepseek-v3:671b": (None, "deepseek_v3"),
    "ollama-utils/exaone-deep:32b": ("exaone_deep", None),
    "ollama-utils/firefunction-v2:70b": (None, "functools"),
    "ollama-utils/granite3-dense:2b": (None, "granite"),
    "ollama-utils/granite3.2:8b": ("granite_words", "granite"),
    "ollama-utils/granite3.3:2b": ("granite", "granite"),
    "ollama-utils/granite4:latest": (None, "hermes"),
    "ollama-utils/phi4-mini:3.8b": (None, "phi4"),
    "ollama-utils/qwen3-coder:30b": (None, "qwen3_coder"),
    "ollama-utils/qwq:32b": ("think", "hermes"),
    "trl/deepseekv3": ("think", "deepseek_v3"),
    "trl/gemma4": ("gemma4", "gemma4"),
    "trl/glm4moe": ("think", "glm"),
    "trl/gptoss": ("harmony", "harmony"),
    "trl/lfm2": (None, "lfm2"),
    "trl/llama3_1": (None, "llama3_json"),
    "trl/nemotron_3_super": ("think", "qwen3_coder"),
    "trl/qwen3": ("think", "hermes"),
    "trl/qwen3_5_think": ("think", "qwen3_coder"),
    "xinference/Deepseek-V3.1": ("think", "deepseek_v31"),
    "xinference/GLM-4.6": ("think", "glm"),
    "xinference/GLM-4.7-Flash": ("think", "glm"),
    "xinference/Kimi-K2.5": ("think", "kimi_k2"),
    "xinference/MiniMax-M2": ("think", "minimax_m2"),
    "xinference/Qwen3-Coder": (None, "qwen3_coder"),
    "xinference/gpt-oss": ("harmony", "harmony"),
    "xinference/mistral-instruct-v0.3": (None, "mistral"),
    "xinference/seed-oss": ("seed_oss", "seed_oss"),
}


@pytest.fixture(scope="session")
def seen():
    """Names of the formats of each template."""
    program = pathlib.Path(os.environ["MACMLX_BIN"]).with_name("output_formats")
    run = subprocess.run([program], input=json.dumps(TEMPLATES).encode(), capture_output=True,
                         check=True)
    return {name: tuple(formats) for name, formats in json.loads(run.stdout).items()}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_format(name, seen):
    assert seen[name] == EXPECTED[name]


def test_templates_that_call_no_tools_have_no_format_of_calls(seen):
    plain = {name for name, text in TEMPLATES.items()
             if not any(word in text for word in ("tool", "function"))}
    assert len(plain) > 50
    assert {name: seen[name] for name in plain if seen[name][1]} == {}
