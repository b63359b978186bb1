"""Wait in real time, for real clusters."""

from __future__ import annotations

import threading
from collections.abc import Callable

from batkube.kernel.stopwatch import Stopwatch

_INTERVAL_S = 0.1


def pause(real_s: float) -> None:
    """Sleep for `real_s` real seconds; Ctrl-C interrupts it."""
    threading.Event().wait(real_s)


def wait_until(condition: Callable[[], bool], within_s: float, interval_s: float = _INTERVAL_S) -> bool:
    """Poll a condition until it is true; return False after `within_s`."""
    stopwatch = Stopwatch()
    while not condition():
        if stopwatch.real_s > within_s:
            return False
        pause(interval_s)
    return True
