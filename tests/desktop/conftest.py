"""A desktop session for all tests, and runs of the app in it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from harness.program import macmlx

from desktop_app import App, free_port
from menu_bar import MenuBar
from session import Session

MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct"


@pytest.fixture(scope="session")
def imported(tmp_path_factory) -> Path:
    """A folder of models with the starter model."""
    home = tmp_path_factory.mktemp("imported")
    done = macmlx(home, "import", os.environ["MACMLX_STARTER_GGUF"], "--name", MODEL)
    assert done.returncode == 0, done.stderr
    return home / "data/models"


@pytest.fixture
def session(tmp_path, imported):
    """A session with a home that has the starter model and a free port in its settings."""
    session = Session(tmp_path)
    data = tmp_path / "data"
    # The weights are only read.
    shutil.copytree(imported, data / "models", copy_function=os.link)
    settings = {"serverPort": free_port(), "onboardingComplete": True, "language": "en"}
    (data / "settings.json").write_text(json.dumps(settings))
    yield session
    session.close()


@pytest.fixture
def port(session) -> int:
    """Where the server would listen."""
    return json.loads((session.home / "data/settings.json").read_text())["serverPort"]


@pytest.fixture
def menu_bar(session):
    menu_bar = MenuBar(session.bus)
    yield menu_bar
    menu_bar.close()


@pytest.fixture
def app(session, menu_bar, port):
    app = App(session, menu_bar, port)
    yield app
    app.close()
