"""How `serve` ends when it is asked to (Ctrl-C, SIGTERM): in good order, and within a second whatever it is at.

A bug of ours ends it in the same good order, and is raised then.

Asyncio alone would notice a signal only between two requests, and a request can take long. So Python's own handlers are
used, which run between any two steps of the program. They ask the event loop to end; if it has not after a moment, they
interrupt what it is at. Later signals are not needed any more, and change nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: How long the event loop may take to end by itself, and then each further step of its end.
_GRACE_S = 0.4
_REPEAT_S = 0.1


class Shutdown:
    """Waits for the signal to end."""

    def __init__(self) -> None:
        self._is_requested = False
        #: The event loop that waits for it.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signal = asyncio.Event()
        #: The first error that ended it.
        self._error: Exception | None = None

    @contextlib.contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM for the wish to end, as long as the block runs.

        Once it has come it is heeded for good: who handled signals before would take the next one for an interruption
        of what is left to do.
        """
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._on_alarm)
        try:
            yield
        finally:
            if not self._is_requested:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def run(self, main: Coroutine[None, None, None]) -> None:
        """Run `main` until it ends, or is not quick enough to end once it was asked to.

        Raises the error that ended it, if one did.
        """
        with contextlib.suppress(KeyboardInterrupt):
            try:
                asyncio.run(main)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        if self._error is not None:
            raise self._error

    def fail(self, error: Exception) -> None:
        """End with `error`, unless another one came first; called within the event loop."""
        self._error = self._error or error
        self._signal.set()

    @property
    def has_started(self) -> bool:
        """Whether `main` had come so far as to wait for its end."""
        return self._loop is not None

    async def wait(self) -> None:
        """Wait until somebody asks for the end; until this is called, being asked interrupts what goes on."""
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
