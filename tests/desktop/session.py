"""A desktop session of its own: an X server without a screen and a session bus."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.program import environment
from PIL import ImageGrab
from Xlib import XK, X
from Xlib.display import Display
from Xlib.error import BadWindow
from Xlib.ext import xtest
from Xlib.protocol.event import ClientMessage

# An X window's number.
Window = int


class Session:
    """What programs with windows need; everything they write goes below `home`."""

    def __init__(self, home: Path):
        self.home = home
        runtime = home / "run"
        runtime.mkdir(parents=True, mode=0o700)
        self.environment = environment(home) | {
            "XDG_RUNTIME_DIR": str(runtime),
            "LANG": "C.UTF-8",
            # No accelerated graphics, no accessibility bus, no portals, no desktop's own ways.
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "WEBKIT_DISABLE_DMABUF_RENDERER": "1",
            "NO_AT_BRIDGE": "1",
            "GTK_USE_PORTAL": "0",
            "GDK_BACKEND": "x11",
        }
        self._programs = []
        self.environment["DISPLAY"] = f":{self._start_display()}"
        self.bus = self._start_bus()
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = self.bus

    def _start_display(self) -> str:
        reader, writer = os.pipe()
        self._run(
            ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1400x900x24", "-nolisten", "tcp"],
            pass_fds=[writer],
        )
        os.close(writer)
        with os.fdopen(reader) as number:
            return number.readline().strip()

    def _start_bus(self) -> str:
        daemon = self._run(
            ["dbus-daemon", "--session", "--nofork", "--print-address"],
            stdout=subprocess.PIPE,
            text=True,
        )
        return daemon.stdout.readline().strip()

    def _run(self, command: list[str], **options) -> subprocess.Popen:
        options = {"stdout": subprocess.DEVNULL} | options
        program = subprocess.Popen(
            command, env=self.environment, stderr=subprocess.DEVNULL, **options
        )
        self._programs.append(program)
        return program

    def windows(self, title: str) -> list[Window]:
        """The visible windows with this title."""
        with self._display() as server:
            return [
                window.id
                for window in below(server.screen().root)
                if is_visible(window) and title_of(server, window) == title
            ]

    def press_escape(self, window: Window) -> None:
        with self._display() as server:
            server.create_resource_object("window", window).set_input_focus(
                X.RevertToParent, X.CurrentTime
            )
            server.sync()
            key = server.keysym_to_keycode(XK.XK_Escape)
            xtest.fake_input(server, X.KeyPress, key)
            xtest.fake_input(server, X.KeyRelease, key)

    def close_window(self, window: Window) -> None:
        """As the button in a window's title bar does."""
        with self._display() as server:
            delete = server.get_atom("WM_DELETE_WINDOW")
            message = ClientMessage(
                window=window,
                client_type=server.get_atom("WM_PROTOCOLS"),
                data=(32, [delete, X.CurrentTime, 0, 0, 0]),
            )
            server.create_resource_object("window", window).send_event(message)

    def screenshot(self, path: Path) -> None:
        """Keeps a picture of the whole display."""
        ImageGrab.grab(xdisplay=self.environment["DISPLAY"]).save(path)

    @contextmanager
    def _display(self) -> Iterator[Display]:
        server = Display(self.environment["DISPLAY"])
        yield server
        server.sync()
        server.close()

    def close(self) -> None:
        for program in reversed(self._programs):
            program.terminate()
            program.wait(10)


def below(window) -> Iterator:
    """The windows within a window."""
    try:
        children = window.query_tree().children
    except BadWindow:
        # Gone since its parent was asked.
        return
    for child in children:
        yield child
        yield from below(child)


def is_visible(window) -> bool:
    try:
        return window.get_attributes().map_state == X.IsViewable
    except BadWindow:
        # Gone since the tree was read.
        return False


def title_of(server: Display, window) -> str | None:
    try:
        title = window.get_full_text_property(server.get_atom("_NET_WM_NAME"))
    except BadWindow:
        return None
    return title
