"""Runs coding agents against macMLX and prints a table; started by `cargo xtask agents`."""

import argparse
import importlib
import json
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path

# What these tests share with others.
sys.path.insert(1, str(Path(__file__).parent.parent))

from driver import fixtures, sandbox
from driver.agent import Installed
from driver.kinds import Context, Edit, Starter
from driver.trial import Result, Trial
from driver.verdict import generating

COLUMNS = "{:<9} {:<9} {:<10} {:<8} {:>8}  {:<7} {:>7}"


def main() -> int:
    arguments = parse_arguments()
    if not sandbox.isolate():
        print("note: no network namespace here: agents could reach the outside", file=sys.stderr)
    # The first process of a namespace ignores signals that it has no handler for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    scratch = Path(arguments.keep or tempfile.mkdtemp(prefix="macmlx-agents-")).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        return run_all(arguments, scratch)
    finally:
        if not arguments.keep:
            shutil.rmtree(scratch, ignore_errors=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--kind", action="append", choices=["edit", "context", "starter"])
    parser.add_argument("--node", type=Path, required=True)
    parser.add_argument("--playback-model", type=Path, required=True)
    parser.add_argument("--starter-gguf", type=Path, required=True)
    parser.add_argument("--starter-name", required=True)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--keep")
    return parser.parse_args()


def run_all(arguments: argparse.Namespace, scratch: Path) -> int:
    kinds = [
        {
            "edit": lambda: Edit(arguments.playback_model, scratch / "playback"),
            "context": lambda: Context(arguments.playback_model, scratch / "playback"),
            "starter": lambda: Starter(
                arguments.starter_gguf,
                arguments.starter_name,
                scratch / "starter",
            ),
        }[name]()
        for name in arguments.kind or ["edit", "context", "starter"]
    ]
    failed = passed = 0
    print(COLUMNS.format("agent", "version", "format", "kind", "requests", "result", "seconds"))
    for named in arguments.agent:
        name, _, folder = named.partition("=")
        agent = importlib.import_module(f"agents.{name}.agent").AGENT
        installed = Installed(Path(folder), arguments.node)
        for wire in agent.wires:
            for kind in kinds:
                trial = Trial(name, agent, installed, wire, kind)
                result = trial.run(scratch / f"{name}-{wire}-{kind.name}")
                report(trial, result)
                failed += bool(result.faults)
                passed += not result.faults
                if arguments.record and isinstance(kind, Edit):
                    fixtures.write(arguments.record, name, wire, result.exchanges, scratch)
    print(f"agents: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


def report(trial: Trial, result: Result):
    print(
        COLUMNS.format(
            trial.name,
            version(trial),
            trial.wire,
            trial.kind.name,
            len(generating(result.exchanges)),
            "FAILED" if result.faults else "ok",
            f"{result.seconds:.1f}",
        )
    )
    for fault in result.faults:
        print(f"    {fault}")
    sys.stdout.flush()


def version(trial: Trial) -> str:
    """As it is pinned."""
    pins = Path(__file__).parent / "agents" / trial.name
    package = pins / "package.json"
    if package.exists():
        return json.loads(package.read_text())["dependencies"][trial.agent.package]
    requirements = (pins / "requirements.txt").read_text()
    return re.search(rf"^{trial.agent.package}==(\S+)", requirements, re.MULTILINE)[1]


if __name__ == "__main__":
    sys.exit(main())
