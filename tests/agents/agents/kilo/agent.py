"""Kilo: chat completions; configured like opencode, which it descends from."""

from agents.opencode.agent import calls, configuration
from driver.agent import Agent, Launch, Run

PACKAGE = "@kilocode/cli"


def launch(run: Run) -> Launch:
    run.write(run.work / "kilo.json", configuration(run))
    return Launch([run.installed.program(PACKAGE, "kilo"), "run", "--auto", run.prompt])


AGENT = Agent(package=PACKAGE, wires=("chat",), launch=launch, calls=calls)
