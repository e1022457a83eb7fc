"""Where agents run: without a network, in a home of their own, gone when their time is up."""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ISOLATED = "MACMLX_AGENTS_ISOLATED"
KILL_GRACE_SECONDS = 10


def isolate() -> bool:
    """Starts this program again where there is only a loopback interface; False if it cannot be.

    That proves that nothing is asked of the outside, and leaves every port to us.
    """
    if ISOLATED in os.environ:
        _raise_loopback()
        return True
    if sys.platform != "linux":
        return False
    namespaces = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        namespaces = ["--user", "--map-root-user", *namespaces]
    try:
        probe = subprocess.run(["unshare", *namespaces, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    if probe.returncode != 0:
        return False
    command = ["unshare", *namespaces, sys.executable, *sys.argv]
    os.execvpe("unshare", command, os.environ | {ISOLATED: "1"})


def _raise_loopback():
    SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        answer = fcntl.ioctl(any_socket, SIOCGIFFLAGS, request)
        flags = struct.unpack("16sh14x", answer)[1] | IFF_UP
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))


@dataclass
class Outcome:
    """How a program ended: no exit code where its time was up."""

    exit_code: int | None
    output: str
    seconds: float


def run(
    command: list[str], env: dict[str, str], folder: Path, log: Path, limit_seconds: float
) -> Outcome:
    """Runs a program to its end or the end of its time; nothing that it started outlives it."""
    if ISOLATED in os.environ:
        # The shell is process 1 of the new namespace: when it ends, so do daemons left behind.
        shell = ["sh", "-c", '"$@"; exit $?', "sh"]
        command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *shell, *command]
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            exit_code = process.wait(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            exit_code = None
        seconds = time.monotonic() - start
        _end_group(process)
    return Outcome(exit_code, log.read_text(errors="replace"), seconds)


def _end_group(process: subprocess.Popen):
    """Ends what is left of the session that `process` leads."""
    for ending in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, ending)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=KILL_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
