"""The item in the menu bar, as a desktop sees it."""

import socket

import pytest

from conftest import MODEL
from desktop_app import answers, get
from test_window import QUESTION
from waiting import until


@pytest.fixture
def tray(app):
    tray = app.tray
    until(lambda: not tray.entries()[0].label.startswith("Starting"), "the first status")
    return tray


def test_the_item_and_its_menu_are_there(tray):
    assert tray.read("Status") == "Active"
    assert tray.read("IconName")
    labels = [entry.label for entry in tray.entries() if not entry.is_separator]
    assert labels == [
        "Ready",
        "Server is off",
        "Copy Server URL",
        "Loaded Models",
        "Downloads",
        "Open macMLX",
        "Settings…",
        "Logs",
        "Start at Login",
        "Quit macMLX",
    ]
    for absent in ("Copy", "Loaded Models", "Downloads"):
        assert not tray.entry(absent).is_enabled
    assert not tray.entry("Start at Login").is_checked


def test_the_server_is_switched_and_models_stay(app, tray, port):
    app.ask("POST", "/v1/chat/completions", QUESTION | {"max_tokens": 2})
    assert not answers(port)
    tray.choose(tray.entry("Server is off"))
    until(lambda: answers(port), "the port")
    assert [model["id"] for model in get(port, "/v1/models")["data"]] == [MODEL]
    server = until(lambda: find(tray, f"Server at http://127.0.0.1:{port}"), "the address")
    assert server.is_checked and tray.entry("Copy").is_enabled

    tray.choose(server)
    until(lambda: not answers(port), "the port to close")
    assert app.status()["loaded_model"] == MODEL
    assert not until(lambda: find(tray, "Server is off"), "the switch").is_checked


def test_a_port_that_is_taken_is_told(tray, port):
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        tray.choose(tray.entry("Server is off"))
        failed = until(lambda: find(tray, "Server failed"), "the failure")
        assert str(port) in failed.label and not failed.is_checked
    # And can be tried again.
    tray.choose(failed)
    until(lambda: find(tray, "Server at"), "the server")


def test_a_loaded_model_is_unloaded(app, tray):
    app.ask("POST", "/v1/chat/completions", QUESTION | {"max_tokens": 2})
    (row,) = until(lambda: tray.entry("Loaded Models").entries, "the model")
    assert row.label.startswith(f"Unload {MODEL} (")
    tray.choose(row)
    until(lambda: not tray.entry("Loaded Models").is_enabled, "the end of the model")
    assert app.status()["loaded_model"] is None


def test_screens_open_from_the_menu(app, tray):
    tray.choose(tray.entry("Settings"))
    until(lambda: app.browser.url.endswith("#/settings"), "the settings")
    tray.choose(tray.entry("Logs"))
    until(lambda: app.browser.url.endswith("#/logs"), "the logs")


def test_the_login_item_is_written_and_removed(tray, session):
    folder = session.home / ".config/autostart"
    tray.choose(tray.entry("Start at Login"))
    (file,) = until(lambda: list(folder.glob("*.desktop")), "the login item")
    assert "--hidden" in file.read_text()
    until(lambda: tray.entry("Start at Login").is_checked, "the mark")
    tray.choose(tray.entry("Start at Login"))
    until(lambda: not list(folder.glob("*.desktop")), "the end of the login item")


def find(tray, start: str):
    """The entry whose label starts so, if there is one by now."""
    return next((entry for entry in tray.entries() if entry.label.startswith(start)), None)
