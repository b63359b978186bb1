"""Python's garbage collector, kept from making clients wait; and memory, given back when it is not needed any more.

A full collection looks at every object there is: tenths of a second with thousands of pods, in which nobody is
answered, and whoever writes most brings it about most often. Nearly everything here is freed without it, so it is put
off until nothing changes, or until it was put off for long. What is freed then still belongs to the process, until
the C library is told to hand it back to the system (Linux: malloc_trim(3)).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterator

_TICK_S = 1.0
_MAX_TICKS = 300
#: New objects before the young ones are looked at, such looks before the not so young are, and such before all are.
_THRESHOLDS = (10_000, 20, 1_000_000)


class IdleGarbageCollector:
    """Collects all garbage at a tick before which nothing has changed since the last one."""

    def __init__(self, loop: AbstractEventLoop, changes: Callable[[], int]) -> None:
        """`changes` counts what has been done so far."""
        self._loop = loop
        self._changes = changes
        self._last_changes = self._collected = changes()
        self._ticks = 0
        self._handle: TimerHandle | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Take the collector over meanwhile; what is there already is never looked at again."""
        before = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)
        self._schedule_tick()
        try:
            yield
        finally:
            if self._handle is not None:
                self._handle.cancel()
            gc.set_threshold(*before)
            gc.unfreeze()

    def _schedule_tick(self) -> None:
        self._handle = self._loop.call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        changes = self._changes()
        is_quiet, self._last_changes = changes == self._last_changes, changes
        self._ticks += 1
        if changes != self._collected and (is_quiet or self._ticks >= _MAX_TICKS):
            gc.collect()
            _release_memory()
            self._collected, self._ticks = changes, 0
        self._schedule_tick()


def _release_memory() -> None:
    """Return freed memory to the system, where the C library can."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
