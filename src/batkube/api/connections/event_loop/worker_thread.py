"""What takes long and concerns nobody else is done apart, in a thread of its own, while the others are answered.

Threads of Python take turns, and whoever wants its turn asks for it only after a while; the event loop gives its own up
at every call to the system, so that while is made short as long as both have something to do.
"""

from __future__ import annotations

import sys
import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable

_SWITCH_INTERVAL_S = 0.0005


class WorkerThread:
    """Does one thing after the other."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        #: What is to be done, the first of it now, and what to call then.
        self._pending: deque[tuple[Callable[[], None], Callable[[], None]]] = deque()
        self._default_switch_interval_s = sys.getswitchinterval()

    def run(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Do `work` apart, and call `then` within the event loop when it is done."""
        self._pending.append((work, then))
        if len(self._pending) == 1:
            sys.setswitchinterval(_SWITCH_INTERVAL_S)
            self._start_next()

    def _start_next(self) -> None:
        # It does not outlive the process: nobody waits for it at the end.
        threading.Thread(target=self._run, args=(self._pending[0][0],), daemon=True).start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._loop.call_soon_threadsafe(self._on_finished)

    def _on_finished(self) -> None:
        _, then = self._pending.popleft()
        if self._pending:
            self._start_next()
        else:
            sys.setswitchinterval(self._default_switch_interval_s)
        then()
