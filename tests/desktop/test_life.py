"""Start and end of the app, and what becomes of its window between them."""

import json
import os
import signal
import subprocess
from pathlib import Path

from harness.program import BINARY as MACMLX

from desktop_app import BINARY, App, answers, is_alive, processes
from test_window import QUESTION
from waiting import until


def test_quitting_leaves_nothing(app, session, port):
    app.ask("POST", "/v1/chat/completions", QUESTION | {"max_tokens": 2})
    app.tray.choose(app.tray.entry("Server"))
    until(lambda: answers(port), "the port")
    ours = [pid for pid in processes(session.home) if is_below(pid, app.pid)]
    assert app.pid in ours and len(ours) > 1
    app.tray.choose(app.tray.entry("Quit"))
    until(lambda: not app.is_alive(), "the app to end")
    until(lambda: not any(map(is_alive, ours)), "its processes to end")
    assert not answers(port)
    assert not (session.home / "data/macmlx.pid").exists()


def test_servers_of_tools_end_with_it(session, menu_bar, port):
    # One that neither speaks the protocol nor ends by itself.
    stuck = {"command": "sleep", "args": ["98765"]}
    servers = session.home / "data/mcp.json"
    servers.write_text(json.dumps({"mcpServers": {"stuck": stuck}}))
    app = App(session, menu_bar, port)
    (tool,) = until(lambda: sleeping(session.home), "the server's process")
    app.tray.choose(app.tray.entry("Quit"))
    until(lambda: not app.is_alive(), "the app to end")
    until(lambda: not is_alive(tool), "the server's process to end")
    app.close()


def test_a_signal_ends_it_as_well(app, session, port):
    app.tray.choose(app.tray.entry("Server"))
    until(lambda: answers(port), "the port")
    os.kill(app.pid, signal.SIGTERM)
    until(lambda: not app.is_alive(), "the app to end")
    assert not answers(port) and not (session.home / "data/macmlx.pid").exists()


def test_quitting_amid_an_answer_asks(app, session):
    app.begin("POST", "/v1/chat/completions", QUESTION | {"max_tokens": 4000})
    until(lambda: app.tray.entry("Quit").label.endswith("(answers running: 1)"), "the warning")
    app.tray.choose(app.tray.entry("Quit"))
    (question,) = until(lambda: session.windows("Quit macMLX"), "the question")
    session.press_escape(question)
    until(lambda: not session.windows("Quit macMLX"), "the question to go")
    assert app.is_alive() and app.status()["requests_running"] == 1


def test_a_closed_window_is_only_hidden(app, session):
    (window,) = session.windows("macMLX")
    session.close_window(window)
    until(lambda: not session.windows("macMLX"), "the window to go")
    assert app.is_alive()
    app.tray.choose(app.tray.entry("Open macMLX"))
    until(lambda: session.windows("macMLX"), "the window to come back")


def test_a_second_launch_shows_the_first(app, session):
    (window,) = session.windows("macMLX")
    session.close_window(window)
    until(lambda: not session.windows("macMLX"), "the window to go")
    second = subprocess.run([BINARY], env=session.environment, timeout=60, check=False)
    assert second.returncode == 0
    assert until(lambda: session.windows("macMLX"), "the window") == [window]
    assert app.is_alive()


def test_a_login_shows_the_menu_bar_only(session, menu_bar):
    app = subprocess.Popen([BINARY, "--hidden"], env=session.environment)
    tray = menu_bar.item(app.pid)
    until(lambda: tray.entries()[0].label == "Ready", "the app")
    assert not session.windows("macMLX")
    tray.choose(tray.entry("Open macMLX"))
    until(lambda: session.windows("macMLX"), "the window")
    app.terminate()
    assert app.wait(60) == 0


def test_another_server_is_named(session, port):
    environment = session.environment
    serve = [MACMLX, "serve", "--port", str(port)]
    server = subprocess.Popen(serve, env=environment, stdout=subprocess.DEVNULL)
    until(lambda: answers(port), "the other server", 120)
    app = subprocess.Popen([BINARY], env=environment)
    (question,) = until(lambda: session.windows("macMLX cannot start"), "the message")
    assert app.poll() is None
    session.press_escape(question)
    assert app.wait(60) == 0
    # The other one is as it was.
    assert answers(port)
    server.terminate()
    assert server.wait(60) == 0


def sleeping(home) -> list[int]:
    command = b"sleep\x0098765\x00"
    return [pid for pid in processes(home) if Path(f"/proc/{pid}/cmdline").read_bytes() == command]


def is_below(pid: int, ancestor: int) -> bool:
    """Whether a process is another one or was started by it."""
    while pid > 1:
        if pid == ancestor:
            return True
        with open(f"/proc/{pid}/stat") as stat:
            pid = int(stat.read().rpartition(")")[2].split()[1])
    return False
