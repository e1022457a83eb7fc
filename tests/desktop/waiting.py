"""Waiting for what comes about by itself."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], what: str, seconds: float = 30) -> T:
    """Looks again and again until there is something true to see, and returns it."""
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}; last seen: {seen!r}"
        time.sleep(0.05)
