"""Signals that ask a command to end: Ctrl-C, SIGTERM as batch systems send it, SIGHUP of a terminal that was closed.

They come as KeyboardInterrupt, wherever the command is. The first has it keep what it computed; the second has it leave
that; the third ends the process, whatever it is doing. What was ignored when we were started stays so (`nohup`).
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from batkube.kernel.stopwatch import Stopwatch

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: When a terminal is closed its shell and the kernel both send SIGHUP, and systemd sends SIGHUP after SIGTERM: within
#: so many seconds that is one request. Somebody who presses Ctrl-C twice means it.
_COALESCE_S = 1.0


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn signals into KeyboardInterrupt while the block lasts."""
    requests = _InterruptHandler()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heeded = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, requests.handle_signal)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


class _InterruptHandler:
    """The requests to end that have come so far."""

    def __init__(self) -> None:
        self._count = 0
        self._since_last: Stopwatch | None = None

    def handle_signal(self, number: int, _frame: FrameType | None) -> None:
        last = self._since_last
        if number != signal.SIGINT and last is not None and last.real_s < _COALESCE_S:
            return
        self._since_last = Stopwatch()
        self._count += 1
        if self._count == 2:
            for one in _SIGNALS:
                signal.signal(one, signal.SIG_DFL)
        raise KeyboardInterrupt
