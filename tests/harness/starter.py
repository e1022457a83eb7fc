"""Fixtures for tests against the starter model, which answers by drawing tokens."""

import os
import shutil
from pathlib import Path

import pytest

from .program import Server, macmlx

MODEL = "test/starter-with-tools"
# The same weights behind a prompt that begins a thought.
THINKER = "test/starter-that-thinks"
THOUGHT = "{%- if add_generation_prompt %}{{ '<think>\\n' }}{% endif %}"
TEMPLATE = Path(__file__).parent.parent / "sdk/chatml_with_tools.jinja"


def make_home(folder: Path) -> Path:
    """A data folder with the starter model twice, to which templates give tools and reasoning."""
    gguf = os.environ["MACMLX_STARTER_GGUF"]
    imported = macmlx(folder, "import", gguf, "--name", MODEL)
    assert imported.returncode == 0, imported.stderr
    models = folder / "data/models"
    shutil.copytree(models / MODEL, models / THINKER)
    template = TEMPLATE.read_text()
    (models / MODEL / "chat_template.jinja").write_text(template)
    (models / THINKER / "chat_template.jinja").write_text(template + THOUGHT)
    return folder


@pytest.fixture(scope="session")
def starter(tmp_path_factory):
    server = Server(make_home(tmp_path_factory.mktemp("starter")), "--model", MODEL)
    yield server
    assert server.stop() == 0
