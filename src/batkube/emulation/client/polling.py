"""Waiting in real time, which only happens where a real cluster is at work."""

from __future__ import annotations

import threading
from collections.abc import Callable

from batkube.kernel.stopwatch import Stopwatch

_INTERVAL_S = 0.1


def pause(real_s: float) -> None:
    """Let so many real seconds pass; Ctrl-C ends it at once."""
    threading.Event().wait(real_s)


def wait_until(is_so: Callable[[], bool], within_s: float, interval_s: float = _INTERVAL_S) -> bool:
    """Ask again and again until the answer is yes; return False when it was no for `within_s`."""
    stopwatch = Stopwatch()
    while not is_so():
        if stopwatch.real_s > within_s:
            return False
        pause(interval_s)
    return True
