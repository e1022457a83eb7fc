"""What it costs to hold an output to a schema: the rate of decoding, and the CPU of masks.

Free and constrained decoding take turns on the same server, so that noise of the machine meets both.
"""

import statistics

import schemas
from protocol import cpu_seconds

TOKENS = 64


def mask_seconds(process_id: int) -> float:
    """CPU time of the threads that compute masks."""
    return sum(
        seconds for (_, name), seconds in cpu_seconds(process_id).items() if name.startswith("masks")
    )


def measure(start, prompts, runs: int) -> dict:
    """For each schema and run: both rates, and the part of a free step that a mask takes."""
    server = start()
    figures: dict[str, list[dict]] = {}
    try:
        for name, schema in schemas.SCHEMAS.items():
            held = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schemas.long(schema)}}}
            # The first use compiles the grammar.
            server.complete(prompts.story(), 2, **held)
            for _ in range(runs):
                free = server.complete(prompts.story(), TOKENS)
                before = mask_seconds(server.process.pid)
                constrained = server.complete(prompts.story(), TOKENS, **held)
                masks = mask_seconds(server.process.pid) - before
                step = 1 / free.decode_tokens_per_second
                figures.setdefault(name, []).append(
                    {
                        "free": free.decode_tokens_per_second,
                        "constrained": constrained.decode_tokens_per_second,
                        "mask_seconds": masks / constrained.completion_tokens,
                        "mask_share": masks / constrained.completion_tokens / step,
                    }
                )
    finally:
        server.stop()
    return figures


def report(figures: dict) -> list[str]:
    """Lines for people."""

    def median(name: str, value) -> float:
        return statistics.median(value(each) for each in figures[name])

    ratios = {name: median(name, lambda each: each["constrained"] / each["free"]) for name in figures}
    shares = {name: median(name, lambda each: each["mask_share"]) for name in figures}
    costs = [median(name, lambda each: each["mask_seconds"]) for name in figures]
    worst, dearest = min(ratios, key=ratios.get), max(shares, key=shares.get)
    return [
        f"decode held to one of {len(figures)} schemas against free decode: "
        f"{statistics.median(ratios.values()):.2f} (median), {ratios[worst]:.2f} (worst: {worst})",
        f"a mask: {statistics.median(costs) * 1e6:.0f} µs of CPU (median of schemas), "
        f"{statistics.median(shares.values()):.1%} of a free step, {shares[dearest]:.1%} at most ({dearest})",
    ]
