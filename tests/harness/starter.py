"""Fixtures for tests against the starter model, which answers by drawing tokens."""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from .program import Server, macmlx

MODEL = "test/starter-with-tools"
# The same weights with the starter's own template, which takes no tools.
PLAIN = "test/starter"
# The same weights behind a prompt that begins a thought.
THINKER = "test/starter-that-thinks"
THOUGHT = "{%- if add_generation_prompt %}{{ '<think>\\n' }}{% endif %}"
SHARED = pytest.StashKey[Server]()
SHARED_URL = "starter_url"
TEMPLATE = Path(__file__).parent.parent / "sdk/chatml_with_tools.jinja"


def make_home(folder: Path) -> Path:
    """A data folder with the starter model as it is, and twice with templates that give it tools and
    reasoning."""
    gguf = os.environ["MACMLX_STARTER_GGUF"]
    imported = macmlx(folder, "import", gguf, "--name", PLAIN)
    assert imported.returncode == 0, imported.stderr
    models = folder / "data/models"
    for name in (MODEL, THINKER):
        shutil.copytree(models / PLAIN, models / name)
    template = TEMPLATE.read_text()
    (models / MODEL / "chat_template.jinja").write_text(template)
    (models / THINKER / "chat_template.jinja").write_text(template + THOUGHT)
    return folder


@pytest.fixture(scope="session")
def starter(request, tmp_path_factory):
    shared = getattr(request.config, "workerinput", {}).get(SHARED_URL)
    if shared:
        yield SharedServer(shared)
    else:
        server = Server(make_home(tmp_path_factory.mktemp("starter")), "--model", MODEL)
        yield server
        assert server.stop() == 0


@dataclass
class SharedServer:
    """What one of several workers knows of a server that it did not start."""

    url: str


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Workers share one server: decoding several answers at once costs hardly more than one."""
    stash = node.config.stash
    if SHARED not in stash:
        home = make_home(Path(tempfile.mkdtemp(prefix="macmlx-starter-")))
        stash[SHARED] = Server(home, "--model", MODEL)
    node.workerinput[SHARED_URL] = stash[SHARED].url


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    server = session.config.stash.get(SHARED, None)
    if server is None:
        return
    code = server.stop()
    shutil.rmtree(server.home)
    if code != 0:
        print(f"the server that workers shared ended with {code}")
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
