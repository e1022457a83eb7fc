"""Measures macmlx against mlx-lm's server on this machine, one after the other, as a client sees them.

Writes every single figure to a JSON file and prints a table of medians and ratios.
"""

import argparse
import json
import platform
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import checkpoints
import encoders
import protocol
import servers
import structure
from tokenizers import Tokenizer

WORDS = Path(__file__).read_text().split()
PREFILL_TOKENS = (512, 2048)
DECODE_TOKENS = 64
CLIENTS = 4
OVERHEAD_TOKENS = 300


class Prompts:
    """Prompts of an exact length, no two of which share a prefix: no cache helps either side."""

    def __init__(self, tokenizer: Path):
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.random = random.Random(0)

    def of_length(self, tokens: int) -> str:
        words = [str(self.random.randrange(10**6))]
        words += [self.random.choice(WORDS) for _ in range(tokens)]
        ids = self.tokenizer.encode(" ".join(words), add_special_tokens=False).ids
        return self.tokenizer.decode(ids[:tokens], skip_special_tokens=False)

    def story(self) -> str:
        return f"{self.random.randrange(10**6)}. Once upon a time, in a small village, there was"


def repeat(runs: int, budget_seconds: float, measure) -> list[dict]:
    """One warm-up, then up to `runs` measurements within the budget.

    When the warm-up alone takes all of the budget, it is the measurement.
    """
    started = time.monotonic()
    figures = []
    warm_up = measure()
    while len(figures) < runs and time.monotonic() - started < budget_seconds:
        figures.append(measure())
    return figures or [warm_up]


def measure_server(start, prompts: Prompts, runs: int, budget_seconds: float) -> dict:
    """All figures of one engine on the starter model."""
    server = start()
    figures: dict = {"startup": [{"seconds": server.startup_seconds}]}
    try:
        for length in PREFILL_TOKENS:

            def prefill():
                seen = server.complete(prompts.of_length(length), max_tokens=1)
                tokens = seen.prompt_tokens or length
                return {
                    "ttft_seconds": seen.first_token_seconds,
                    "tokens_per_second": tokens / seen.first_token_seconds,
                }

            figures[f"prefill_{length}"] = repeat(runs, budget_seconds, prefill)
            progress(f"{server.name}: prefill of {length} tokens")

        def decode():
            seen = server.complete(prompts.story(), DECODE_TOKENS)
            return {"tokens_per_second": seen.decode_tokens_per_second}

        def together():
            stories = [prompts.story() for _ in range(CLIENTS)]
            return {"tokens_per_second": server.complete_together(stories, DECODE_TOKENS)}

        figures["decode_1"] = repeat(runs, budget_seconds, decode)
        progress(f"{server.name}: decode alone")
        figures[f"decode_{CLIENTS}"] = repeat(runs, budget_seconds, together)
        progress(f"{server.name}: decode of {CLIENTS} clients")
        figures["peak_rss"] = [{"bytes": server.peak_rss_bytes()}]
    finally:
        server.stop()
    for _ in range(2):
        again = start()
        figures["startup"].append({"seconds": again.startup_seconds})
        again.stop()
    return figures


def our_step_seconds(start, prompts: Prompts, runs: int, budget_seconds: float) -> list[dict]:
    """Seconds of a decode step of the many-layered tiny model, through our server and HTTP."""
    server = start()
    try:

        def step():
            seen = server.complete(prompts.story(), OVERHEAD_TOKENS)
            return {"step_seconds": 1 / seen.decode_tokens_per_second}

        return repeat(runs, budget_seconds, step)
    finally:
        server.stop()


def peer_step_seconds(folder: Path, prompts: Prompts, runs: int, budget_seconds: float) -> list[dict]:
    """The same in mlx-lm's own generation loop, in process and without HTTP."""
    import mlx.core as mx
    from mlx_lm import load
    from mlx_lm.generate import generate_step

    model, tokenizer = load(str(folder))

    def step():
        prompt = mx.array(tokenizer.encode(prompts.story()))
        times = []
        for _token, _logprobs in generate_step(prompt, model, max_tokens=OVERHEAD_TOKENS):
            times.append(time.perf_counter())
        return {"step_seconds": (times[-1] - times[0]) / (len(times) - 1)}

    return repeat(runs, budget_seconds, step)


def median(figures: list[dict], field: str) -> float:
    return statistics.median(each[field] for each in figures)


def table(ours: dict, peer: dict) -> list[tuple[str, float, float, float, str]]:
    """Rows of (what, ours, theirs, how many times better we are, unit)."""
    rows = []

    def row(what, key, field, unit, higher_is_better, scale=1.0):
        a, b = median(ours[key], field) * scale, median(peer[key], field) * scale
        rows.append((what, a, b, a / b if higher_is_better else b / a, unit))

    for length in PREFILL_TOKENS:
        row(f"time to first token, {length} tokens", f"prefill_{length}", "ttft_seconds", "s", False)
        row(f"prefill, {length} tokens", f"prefill_{length}", "tokens_per_second", "tok/s", True)
    row("decode, 1 client", "decode_1", "tokens_per_second", "tok/s", True)
    row(f"decode, {CLIENTS} clients together", f"decode_{CLIENTS}", "tokens_per_second", "tok/s", True)
    row("peak resident memory", "peak_rss", "bytes", "MB", False, 1e-6)
    row("start to first token", "startup", "seconds", "s", False)
    row("host time of a decode step", "overhead", "step_seconds", "ms", False, 1e3)
    return rows


def progress(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True, help="release build of macmlx")
    parser.add_argument("--model", type=Path, required=True, help="folder of the starter model")
    parser.add_argument("--work", type=Path, required=True, help="where derived models are kept")
    parser.add_argument("--output", type=Path, required=True, help="JSON file for every figure")
    parser.add_argument("--runs", type=int, default=5, help="measurements after the warm-up")
    parser.add_argument(
        "--budget-seconds",
        type=float,
        default=600,
        help="a figure that takes longer than this gets fewer runs",
    )
    parser.add_argument(
        "--playback-model", type=Path, required=True, help="folder of a model whose answers are played"
    )
    parser.add_argument(
        "--only", choices=["protocol", "structure", "encoders"], help="measure this part alone and print it"
    )
    parser.add_argument("--encoders", type=Path, help="folder of encoder models, for that part")
    parser.add_argument("--encoders-python", type=Path, help="Python with sentence-transformers")
    parser.add_argument("--json", action="store_true", help="print the JSON instead of the table")
    options = parser.parse_args()

    folder = checkpoints.widen_to_float32(options.model, options.work / "starter-float32")
    tiny = checkpoints.make_overhead_model(options.model, options.work / "overhead")
    prompts = Prompts(folder / "tokenizer.json")
    limits = (options.runs, options.budget_seconds)

    with tempfile.TemporaryDirectory() as home:

        def start_ours(model: Path):
            return servers.start_ours(options.binary, model, Path(home))

        if options.only == "encoders":
            peer = encoders.Peer(options.encoders_python, options.encoders)
            server = servers.start_encoders(options.binary, options.encoders, Path(home))
            print("\n".join(encoders.report(encoders.measure(server, peer, options.runs))))
            return
        if options.only == "structure":
            print("\n".join(structure.report(structure.measure(lambda: start_ours(folder), prompts, options.runs))))
            return
        around = protocol.measure_streams(
            options.binary, options.playback_model, Path(home), options.runs
        )
        progress("macmlx: frames of played answers")
        around |= protocol.measure_share(
            lambda: start_ours(folder), prompts, options.runs, CLIENTS, DECODE_TOKENS
        )
        progress("macmlx: share of the protocol layer")
        if options.only == "protocol":
            print("\n".join(protocol.report(around)))
            return
        ours = measure_server(lambda: start_ours(folder), prompts, *limits) | around
        ours["overhead"] = our_step_seconds(lambda: start_ours(tiny), prompts, *limits)
        progress("macmlx: host time of a step")
        held = structure.measure(lambda: start_ours(folder), prompts, options.runs)
        progress("macmlx: decode held to schemas")
    peer = {"overhead": peer_step_seconds(tiny, prompts, *limits)}
    progress("mlx-lm: host time of a step")
    peer |= measure_server(lambda: servers.start_peer(folder), prompts, *limits)

    rows = table(ours, peer)
    scaling = median(ours[f"decode_{CLIENTS}"], "tokens_per_second") / median(
        ours["decode_1"], "tokens_per_second"
    )
    report = {
        "machine": platform.platform(),
        "runs": options.runs,
        "macmlx": ours,
        "mlx_lm": peer,
        "ratios": {what: ratio for what, _, _, ratio, _ in rows},
        "own_scaling": scaling,
        "structure": held,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=1))
    if options.json:
        print(json.dumps(report))
        return
    print(f"{'':40}{'macmlx':>12}{'mlx-lm':>12}{'better by':>12}")
    for what, a, b, ratio, unit in rows:
        print(f"{what + ' (' + unit + ')':40}{a:12.2f}{b:12.2f}{ratio:11.2f}x")
    print(f"{CLIENTS} clients together against 1, ours: {scaling:.2f}x")
    print("\n".join(protocol.report(ours) + structure.report(held)))
    print(f"every figure: {options.output}")


if __name__ == "__main__":
    main()
