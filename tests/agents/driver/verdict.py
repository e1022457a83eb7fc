"""What must have come of a run; each function returns what is wrong, nothing where all is well."""

import json
import re
from pathlib import Path

from driver import scenario
from driver.sandbox import Outcome
from driver.wire import Exchange

GENERATING = re.compile(
    r"(/v1)?(/chat/completions|/completions|/messages|/responses)|/api/(chat|generate)"
)
# A context that is too small: both numbers, and which model to take.
TOO_LONG = re.compile(r"\d+ tokens.* \d+ .*take a model with a longer context, such as `\S+`")
# Of an error message that is looked for in what an agent printed; some print no more of it.
SHOWN_CHARACTERS = 60


def generating(exchanges: list[Exchange]) -> list[Exchange]:
    return [
        exchange
        for exchange in exchanges
        if exchange.method == "POST" and GENERATING.fullmatch(exchange.path)
    ]


def edited(outcome: Outcome, exchanges: list[Exchange], file: Path) -> list[str]:
    """The agent has read the file, edited it, and told its user."""
    faults = _ended_well(outcome, exchanges)
    if file.read_text() != scenario.WANTED:
        faults.append("the file does not have its new content")
    if scenario.FINAL not in outcome.output:
        faults.append("the user does not see the model's last sentence")
    return faults


def answered(
    outcome: Outcome, exchanges: list[Exchange], *, offers_tools: bool
) -> list[str]:
    """The agent has got an answer, to a request with tools if it has any, and told its user so."""
    faults = _ended_well(outcome, exchanges)
    if offers_tools and not any(
        exchange.status == 200 and _offers_tools(exchange) for exchange in generating(exchanges)
    ):
        faults.append("no request with tools was answered")
    if not outcome.output.strip():
        faults.append("the user sees nothing")
    return faults


def refused(exchanges: list[Exchange], refusal: re.Pattern[str]) -> list[str]:
    """The messages of requests that were refused with 400 and words that `refusal` is found in."""
    return [
        message(exchange)
        for exchange in generating(exchanges)
        if exchange.status == 400 and refusal.search(message(exchange))
    ]


def told(
    outcome: Outcome,
    exchanges: list[Exchange],
    refusal: re.Pattern[str],
    own_words: tuple[str, ...] = (),
) -> list[str]:
    """The server has refused the request with 400 and a message that `refusal` is found in, and
    the user sees that message or what the agent says in its place."""
    faults = _timed_out(outcome) + _server_faults(exchanges)
    refusals = refused(exchanges, refusal)
    if not refusals:
        replies = [f"{each.status} {message(each)}" for each in generating(exchanges)]
        faults.append(f"no refusal with {refusal.pattern!r}, but {replies}")
    shown = _letters(outcome.output)
    words = [text[:SHOWN_CHARACTERS] for text in refusals] + list(own_words)
    if refusals and not any(_letters(word) in shown for word in words):
        faults.append(f"the user does not see why: {refusals[0]}")
    return faults


def _offers_tools(exchange: Exchange) -> bool:
    try:
        return bool(json.loads(exchange.body).get("tools"))
    except (ValueError, AttributeError):
        return False


def message(exchange: Exchange) -> str:
    """The text of an error reply, in any dialect's shape."""
    try:
        error = json.loads(exchange.reply)["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return error["message"] if isinstance(error, dict) else error


def _ended_well(outcome: Outcome, exchanges: list[Exchange]) -> list[str]:
    faults = _timed_out(outcome) + _server_faults(exchanges)
    if outcome.exit_code:
        faults.append(f"it exited with {outcome.exit_code}")
    generations = generating(exchanges)
    if not generations:
        faults.append("it asked for no answer")
    for exchange in generations:
        if 400 <= exchange.status < 500:
            faults.append(f"{exchange.status} on {exchange.target}: {message(exchange)}")
    return faults


def _timed_out(outcome: Outcome) -> list[str]:
    return ["it did not end in time"] if outcome.exit_code is None else []


def _server_faults(exchanges: list[Exchange]) -> list[str]:
    return [
        f"{exchange.status} on {exchange.target}: {message(exchange)}"
        for exchange in exchanges
        if exchange.status >= 500
    ]


def _letters(text: str) -> str:
    """Without colours, line breaks, frames and escapes, which each agent adds in its own way."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    return re.sub(r"[^a-z0-9]", "", text.lower())
