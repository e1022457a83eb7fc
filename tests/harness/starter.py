"""Fixtures for tests against the starter model, which answers by drawing tokens."""

import os
import shutil
from pathlib import Path

import pytest

from .program import Server, macmlx

MODEL = "test/starter-with-tools"
TEMPLATE = Path(__file__).parent.parent / "sdk/chatml_with_tools.jinja"


def make_home(folder: Path) -> Path:
    """A data folder with the starter model, to which a template gives tools and reasoning."""
    gguf = os.environ["MACMLX_STARTER_GGUF"]
    imported = macmlx(folder, "import", gguf, "--name", MODEL)
    assert imported.returncode == 0, imported.stderr
    shutil.copyfile(TEMPLATE, folder / "data/models" / MODEL / "chat_template.jinja")
    return folder


@pytest.fixture(scope="session")
def starter(tmp_path_factory):
    server = Server(make_home(tmp_path_factory.mktemp("starter")), "--model", MODEL)
    yield server
    assert server.stop() == 0
