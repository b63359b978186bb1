"""Shutdown of `serve` on SIGINT or SIGTERM: orderly, and within a second even if the event loop is busy.

A bug causes the same orderly shutdown, and is raised afterwards.

asyncio's own signal handlers only run between callbacks, and one request can take long. Python's signal handlers run
between any two bytecodes. They ask the event loop to stop; after a grace period they raise KeyboardInterrupt in
whatever it executes. Later signals have no effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Grace period for the event loop to stop, and the interval of interrupts after it.
_GRACE_S = 0.4
_REPEAT_S = 0.1


class Shutdown:
    """Waits for the shutdown request, and runs the service until then."""

    def __init__(self) -> None:
        self._is_requested = False
        #: The event loop that waits for the request; None before `wait` is called.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signal = asyncio.Event()
        #: The first error that caused the shutdown.
        self._error: Exception | None = None

    @contextlib.contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Treat SIGINT and SIGTERM as shutdown requests while the block runs.

        After a request the handlers stay installed: the previous ones would interrupt the remaining clean-up at the
        next signal.
        """
        previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._on_alarm)
        try:
            yield
        finally:
            if not self._is_requested:
                for number, handler in previous.items():
                    signal.signal(number, handler)

    def run(self, main: Coroutine[None, None, None]) -> None:
        """Run `main` until it returns, or until it fails to stop in time after a shutdown request.

        Raises the error that caused the shutdown, if any.
        """
        with contextlib.suppress(KeyboardInterrupt):
            try:
                asyncio.run(main)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        if self._error is not None:
            raise self._error

    def fail(self, error: Exception) -> None:
        """Shut down with `error`, unless another error came first. Call it in the event loop."""
        self._error = self._error or error
        self._signal.set()

    @property
    def has_started(self) -> bool:
        """Whether the service has completed its start-up."""
        return self._loop is not None

    async def wait(self) -> None:
        """Wait for a shutdown request. Before this is called, a request interrupts the start-up."""
        self._loop = asyncio.get_running_loop()
        await self._signal.wait()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._is_requested:
            return
        self._is_requested = True
        signal.setitimer(signal.ITIMER_REAL, _GRACE_S, _REPEAT_S)
        if self._loop is None:
            raise KeyboardInterrupt
        self._loop.call_soon_threadsafe(self._signal.set)

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt
