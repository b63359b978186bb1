"""Schedules Python's garbage collection for idle moments, and returns freed memory to the system.

A full collection visits every object. With thousands of pods it takes tenths of a second, in which no request is
handled, and frequent writes trigger it more often. Reference counting already frees nearly everything, so collections
are postponed until nothing changes, but not for longer than `_MAX_TICKS`. The C library keeps freed memory until
malloc_trim(3) returns it (Linux).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterator

_TICK_S = 1.0
_MAX_TICKS = 300
#: Thresholds of the three generations (gc.set_threshold); the last one practically disables full collections.
_THRESHOLDS = (10_000, 20, 1_000_000)


class IdleGarbageCollector:
    """Runs a full collection once nothing has changed for a tick."""

    def __init__(self, loop: AbstractEventLoop, changes: Callable[[], int]) -> None:
        """`changes` returns a counter that grows with every change."""
        self._loop = loop
        self._changes = changes
        self._last_changes = self._collected = changes()
        self._ticks = 0
        self._handle: TimerHandle | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Control the collector while the block runs. It never visits objects that exist already (gc.freeze)."""
        previous = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)
        self._schedule_tick()
        try:
            yield
        finally:
            if self._handle is not None:
                self._handle.cancel()
            gc.set_threshold(*previous)
            gc.unfreeze()

    def _schedule_tick(self) -> None:
        self._handle = self._loop.call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        changes = self._changes()
        is_idle, self._last_changes = changes == self._last_changes, changes
        self._ticks += 1
        if changes != self._collected and (is_idle or self._ticks >= _MAX_TICKS):
            gc.collect()
            _release_memory()
            self._collected, self._ticks = changes, 0
        self._schedule_tick()


def _release_memory() -> None:
    """Return freed memory to the system, if the C library supports it."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
