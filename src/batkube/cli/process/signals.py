"""Handle signals that request a shutdown: SIGINT (Ctrl-C), SIGTERM (batch systems), SIGHUP (closed terminal).

Each raises KeyboardInterrupt in the main thread. After the first signal, the command saves its results so far; the
second aborts that; the third kills the process. Signals that were ignored at the start stay ignored (`nohup`).
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from batkube.kernel.stopwatch import Stopwatch

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Signals within this time count as one request: when a terminal is closed, both its shell and the kernel send SIGHUP,
#: and systemd can send SIGHUP after SIGTERM. SIGINT is not coalesced: pressing Ctrl-C twice is deliberate.
_COALESCE_S = 1.0


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Convert signals to KeyboardInterrupt within the block."""
    interrupt_handler = _InterruptHandler()
    previous_handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    handled = [number for number, handler in previous_handlers.items() if handler is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, interrupt_handler.handle_signal)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, previous_handlers[number])


class _InterruptHandler:
    """Counts the shutdown requests so far."""

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
            for each_signal in _SIGNALS:
                signal.signal(each_signal, signal.SIG_DFL)
        raise KeyboardInterrupt
