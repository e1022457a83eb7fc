"""One run of an agent in one wire format, and what came of it."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from harness.program import Server

from driver import sandbox, scenario
from driver.agent import Agent, Installed, Run
from driver.kinds import Edit, Starter
from driver.recorder import Recorder
from driver.wire import Exchange


@dataclass(frozen=True)
class Result:
    """What is wrong, nothing where all is well; what went over the wire; how long it took."""

    faults: list[str]
    exchanges: list[Exchange]
    seconds: float


@dataclass(frozen=True)
class Trial:
    name: str
    agent: Agent
    installed: Installed
    wire: str
    kind: Edit | Starter

    def run(self, folder: Path) -> Result:
        """Runs it in `folder`, which is made, and where everything stays that the run leaves."""
        home, work, temporary = folder / "home", folder / "work", folder / "tmp"
        for new in (home, work, temporary):
            new.mkdir(parents=True)
        file = work / scenario.FILE
        file.write_text(scenario.CONTENT)
        options = self.kind.serve(self.agent, file, folder)
        server = Server(self.kind.home, *options)
        try:
            port = self.agent.fixed_ports.get(self.wire, 0)
            recorder = Recorder(urlsplit(server.url).port, port)
        except OSError as error:
            server.stop()
            return Result([f"cannot listen on port {port}: {error.strerror}"], [], 0)
        with recorder:
            run = Run(
                wire=self.wire,
                url=f"http://127.0.0.1:{recorder.port}",
                model=self.kind.model,
                home=home,
                work=work,
                prompt=self.kind.prompt,
                wants_short_answer=self.kind.wants_short_answer,
                installed=self.installed,
            )
            launch = self.agent.launch(run)
            outcome = sandbox.run(
                launch.command,
                self._environment(home, temporary) | launch.env,
                work,
                folder / "output.txt",
                self.kind.limit_seconds,
            )
            exchanges = recorder.exchanges()
        code = server.stop()
        faults = self.kind.faults(self.agent, outcome, exchanges, file)
        if code:
            faults.append(f"the server exited with {code}")
        return Result(faults, exchanges, outcome.seconds)

    def _environment(self, home: Path, temporary: Path) -> dict[str, str]:
        """Nothing of the tester's own settings, nor of other agents that run here."""
        return {
            "PATH": f"{self.installed.node}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
        }
