"""Run long computations in a worker thread while the event loop serves other requests.

A Python thread that waits for the GIL requests it only after the switch interval. The event loop releases the GIL at
every system call and would have to wait that long each time, so the interval is shortened while the worker runs.
"""

from __future__ import annotations

import sys
import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable

_SWITCH_INTERVAL_S = 0.0005


class WorkerThread:
    """Runs functions one after the other in a thread."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        #: The running function, then those that wait, each with its callback.
        self._pending: deque[tuple[Callable[[], None], Callable[[], None]]] = deque()
        self._default_switch_interval_s = sys.getswitchinterval()

    def run(self, work: Callable[[], None], then: Callable[[], None]) -> None:
        """Run `work` in the thread, and call `then` in the event loop when it has finished."""
        self._pending.append((work, then))
        if len(self._pending) == 1:
            sys.setswitchinterval(_SWITCH_INTERVAL_S)
            self._start_next()

    def _start_next(self) -> None:
        # A daemon thread does not delay the exit of the process.
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
