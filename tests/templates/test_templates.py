"""Real chat templates, rendered here and by transformers, which is the judge."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from transformers.utils import chat_template_utils

import conversations
import corpus

BOS, EOS = "<|bos|>", "<|eos|>"
TEMPLATES = corpus.load(
    [pathlib.Path(path) for path in os.environ["MACMLX_TEMPLATE_WHEELS"].split(os.pathsep)],
    pathlib.Path(os.environ["MACMLX_TEMPLATE_NODE"]) / "node_modules")
CONVERSATIONS = {name: (messages, options) for name, messages, options in conversations.ALL}
GROWING = {name: (list(conversations.steps(messages)), options)
           for name, messages, options in conversations.GROWING}

ANY = set(CONVERSATIONS)

# Made for something else than conversations, or in need of variables of their own.
NO_CHAT = {
    "ollama-utils/firefunction-v2:70b",
    "ollama-utils/granite3-guardian:2b",
    "ollama-utils/shieldgemma:27b",
    "xinference/qwen3_vl_reranker",
}

# What is done to a template for one conversation is done to it for all like it, so some are changed
# that it would show as they are.
DELIBERATE = {
    # Its system turns look like an assistant's.
    "xinference/minicpm-2b-dpo-bf16": ANY,
    # It prints arguments as Python does, unless they are text.
    "xinference/deepseek-v3": ANY,
    # They drop system turns between others where none is at the start.
    "trl/cohere2": {"system after user", "system at the end"},
    "trl/cohere2_training": {"system after user", "system at the end"},
    # It refuses text beside a call where there is reasoning too.
    "xinference/gpt-oss": {"text beside call", "calls without tools"},
    # They show the name of the tool, which we know from the call.
    "axolotl/jamba": {"result without name"},
    "xinference/Kimi-K2.5": {"result without name"},
}

# They put system turns before the last user turn, and take no text beside a call, which then goes
# into the result.
ELSEWHERE = {
    "axolotl/mistral_v2v3",
    "axolotl/mistral_v3_tekken",
    "axolotl/pixtral",
    "ollama-utils/mixtral:8x22b",
    "xinference/mistral-instruct-v0.3",
    "xinference/mistral-large-instruct",
}


def chat_prompt(messages, options):
    """As the Rust side takes it."""
    def message(turn):
        calls = [{**call, "arguments": call["arguments"] if isinstance(call["arguments"], str)
                  else json.dumps(call["arguments"], ensure_ascii=False)}
                 for call in turn.get("calls", [])]
        return {"role": turn["role"],
                "content": [{"Text": turn["text"]}] if turn["text"] or not calls else [],
                "reasoning": turn.get("reasoning"), "tool_calls": calls,
                "tool_call_id": turn.get("id"), "name": turn.get("name")}

    return {"messages": [message(turn) for turn in messages],
            "tools": [{**tool, "strict": False} for tool in tools(options)],
            "tool_choice": "Auto", "single_tool_call": False,
            "template_kwargs": options.get("kwargs", {}),
            "continue_final_message": options.get("continue", False)}


def reasoning(options):
    return {"enabled": options.get("enabled"), "is_hint": True, "budget_tokens": None,
            "effort": options.get("effort")}


def tools(options):
    return conversations.TOOLS if options.get("tools") else []


def natural(messages):
    """As transformers documents it."""
    for turn in messages:
        message = {"role": turn["role"], "content": turn["text"]}
        if turn.get("reasoning"):
            message["reasoning_content"] = turn["reasoning"]
        if turn.get("calls"):
            message["tool_calls"] = [
                {"id": call["id"], "type": "function",
                 "function": {"name": call["name"], "arguments": call["arguments"] or {}}}
                for call in turn["calls"]]
        if turn.get("id"):
            message["tool_call_id"] = turn["id"]
        if turn.get("name"):
            message["name"] = turn["name"]
        yield message


@pytest.fixture(scope="session")
def ours():
    """What our renderer makes of each template, by template and prompt."""
    prompts = [{"name": name, "chat": chat_prompt(messages, options),
                "reasoning": reasoning(options)}
               for name, (messages, options) in CONVERSATIONS.items()]
    prompts += [{"name": f"{name} {number}", "chat": chat_prompt(step, options),
                 "reasoning": reasoning(options)}
                for name, (steps, options) in GROWING.items()
                for number, step in enumerate(steps)]
    given = {"templates": [{"name": name, "text": text} for name, text in TEMPLATES.items()],
             "bos_token": BOS, "eos_token": EOS, "prompts": prompts}
    run = subprocess.run([os.environ["MACMLX_BIN"]], input=json.dumps(given).encode(),
                         stdout=subprocess.PIPE, check=True)
    rendered = {}
    for line in run.stdout.splitlines():
        output = json.loads(line)
        prompts = {prompt["prompt"]: prompt for prompt in output["prompts"]}
        rendered[output["template"]] = {"error": output["error"], "prompts": prompts}
    return rendered


def jinja(template, variables):
    """The template rendered by transformers' Jinja with given variables; None: it refuses."""
    try:
        compiled = chat_template_utils._compile_jinja_template(TEMPLATES[template])
        return compiled.render(bos_token=BOS, eos_token=EOS, **variables)
    except Exception:
        return None


def transformers(template, messages, options, variables):
    """The conversation rendered by transformers itself; None: it refuses."""
    schemas = [{"type": "function", "function": tool} for tool in tools(options)]
    known = ("messages", "tools", "documents", "add_generation_prompt")
    others = {key: value for key, value in variables.items() if key not in known}
    try:
        continues = options.get("continue", False)
        texts, _ = chat_template_utils.render_jinja_template(
            conversations=[list(natural(messages))], tools=schemas or None,
            chat_template=TEMPLATES[template], continue_final_message=continues,
            add_generation_prompt=not continues, bos_token=BOS, eos_token=EOS, **others)
        return texts[0]
    except Exception:
        return None


def needles(messages):
    """The numbered words of a conversation, in order."""
    return dict.fromkeys(re.findall(r"k\d+-\w+", json.dumps(messages, ensure_ascii=False)))


def shows(text, messages, any_order):
    if text is None:
        return False
    if any_order:
        return all(needle in text for needle in needles(messages))
    at = 0
    for needle in needles(messages):
        at = text.find(needle, at)
        if at < 0:
            return False
    return True


@pytest.mark.parametrize("template", TEMPLATES)
def test_jinja_agrees(ours, template):
    """Given the same variables, Jinja renders the same bytes or refuses as we do."""
    assert ours[template]["error"] is None
    for name, (_, options) in CONVERSATIONS.items():
        # Where the final message ends is cut; transformers itself is the judge of that.
        if not options.get("continue"):
            prompt = ours[template]["prompts"][name]
            assert prompt["text"] == jinja(template, prompt["variables"]), (name, prompt["error"])


@pytest.mark.parametrize("template", TEMPLATES)
def test_transformers_agrees(ours, template, record):
    """Transformers renders the same bytes from a conversation as it is, unless that loses
    something."""
    needless = []
    for name, (messages, options) in CONVERSATIONS.items():
        prompt = ours[template]["prompts"][name]
        theirs = transformers(template, messages, options, prompt["variables"])
        if prompt["text"] == theirs:
            record["both refuse" if theirs is None else "same"].append(name)
        else:
            record["repaired"].append(name)
            deliberate = name in DELIBERATE.get(template, ())
            if shows(theirs, messages, options.get("any order")) and not deliberate:
                needless.append((name, theirs, prompt["text"] or prompt["error"]))
    assert not needless


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name not in NO_CHAT])
def test_nothing_is_lost(ours, template):
    lost = []
    for name, (messages, options) in CONVERSATIONS.items():
        prompt = ours[template]["prompts"][name]
        # Some put system turns or results elsewhere.
        theirs = transformers(template, messages, options, prompt["variables"])
        any_order = (options.get("any order") or template in ELSEWHERE
                     or prompt["text"] == theirs)
        if not shows(prompt["text"], messages, any_order):
            lost.append((name, prompt["text"] or prompt["error"]))
    assert not lost


@pytest.mark.parametrize("template", TEMPLATES)
def test_wishes_about_reasoning_arrive(ours, template):
    """What a variable changes, the option for it changes too."""
    prompts = ours[template]["prompts"]

    def with_variable(name, value):
        return jinja(template, {**prompts["system turns"]["variables"], name: value})

    for name in ("enable_thinking", "thinking", "reasoning"):
        on, off = with_variable(name, True), with_variable(name, False)
        # One that refuses to be switched off is no switch.
        if on and off and on != off:
            assert (prompts["thinking on"]["text"], prompts["thinking off"]["text"]) == (on, off)
    for name in ("reasoning_effort", "reasoning_strength", "low_effort", "medium_effort"):
        low, high = with_variable(name, "low"), with_variable(name, "")
        if low != high:
            assert prompts["effort low"]["text"] != prompts["effort max"]["text"]
            assert prompts["effort low"]["text"] is not None


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_conversation_keeps_its_beginning(ours, template, record):
    """What a turn is to the template never depends on later ones. Whether the template itself
    keeps the beginning of its prompt is only counted."""
    for name, (steps, _) in GROWING.items():
        grown = [ours[template]["prompts"][f"{name} {number}"] for number in range(len(steps))]
        record_name = f"prefix: {name}: "
        kept = set()
        for before, after in zip(grown, grown[1:]):
            count = len(before["variables"]["messages"])
            assert after["variables"]["messages"][:count] == before["variables"]["messages"], name
            if before["text"] is None or after["text"] is None:
                kept.add("refused")
                continue
            bare = jinja(template, {**before["variables"], "add_generation_prompt": False})
            if after["text"].startswith(before["text"]):
                kept.add("kept")
            elif bare is not None and after["text"].startswith(bare):
                kept.add("kept but for the generation prompt")
            else:
                kept.add("changed")
        worst = [kind for kind in ("refused", "changed", "kept but for the generation prompt",
                                   "kept") if kind in kept][0]
        record[record_name + worst].append(template)
