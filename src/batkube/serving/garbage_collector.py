"""Schedules Python's garbage collection for idle moments, and returns freed memory to the system.

A full collection visits every object. With thousands of pods it takes tenths of a second, in which no request is
handled, and frequent writes trigger it more often. Reference counting already frees nearly everything, so full
collections are postponed until nothing changes. Under constant load, one takes place after `_MAX_TICKS` if memory has
grown by a quarter meanwhile. The C library keeps freed memory until malloc_trim(3) returns it (Linux).

The collector counts allocations minus deallocations. While as many objects are freed as created, it never collects even
the youngest generation, which then contains everything that was created for minutes; the next burst of objects visits
all of it, which takes seconds. Young objects are therefore collected at short intervals.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable, Iterator

_TICK_S = 1.0
_YOUNG_TICK_S = 0.1
_MAX_TICKS = 300
#: Thresholds of the three generations (gc.set_threshold); the last one practically disables full collections.
_THRESHOLDS = (10_000, 20, 2_000_000_000)
_YOUNG_GENERATIONS = 1
#: The growth of allocated memory that makes a full collection under load worth its pause.
_MIN_GROWTH = 1.25


class IdleGarbageCollector:
    """Runs a full collection once nothing has changed for a tick."""

    def __init__(self, loop: AbstractEventLoop, changes: Callable[[], int]) -> None:
        """`changes` returns a counter that grows with every change."""
        self._loop = loop
        self._changes = changes
        self._last_changes = self._collected = changes()
        #: The changes at the latest collection of young objects.
        self._young_changes = self._collected
        #: Memory blocks that were allocated after the latest full collection.
        self._collected_blocks = sys.getallocatedblocks()
        self._ticks = 0
        self._handles: dict[Callable[[], None], TimerHandle] = {}

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Control the collector while the block runs. It never visits objects that exist already (gc.freeze)."""
        previous = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)
        self._schedule(_TICK_S, self._tick)
        self._schedule(_YOUNG_TICK_S, self._tick_young)
        try:
            yield
        finally:
            for handle in self._handles.values():
                handle.cancel()
            gc.set_threshold(*previous)
            gc.unfreeze()

    def _schedule(self, delay_s: float, tick: Callable[[], None]) -> None:
        self._handles[tick] = self._loop.call_later(delay_s, tick)

    def _tick_young(self) -> None:
        changes = self._changes()
        if changes != self._young_changes:
            gc.collect(_YOUNG_GENERATIONS)
            self._young_changes = changes
        self._schedule(_YOUNG_TICK_S, self._tick_young)

    def _tick(self) -> None:
        changes = self._changes()
        is_idle, self._last_changes = changes == self._last_changes, changes
        self._ticks += 1
        is_overdue = self._ticks >= _MAX_TICKS
        if changes != self._collected and (is_idle or (is_overdue and self._has_grown)):
            gc.collect()
            _release_memory()
            self._collected, self._collected_blocks, self._ticks = changes, sys.getallocatedblocks(), 0
        elif is_overdue:
            self._ticks = 0
        self._schedule(_TICK_S, self._tick)

    @property
    def _has_grown(self) -> bool:
        """Whether much more memory is allocated than after the latest full collection."""
        return sys.getallocatedblocks() > _MIN_GROWTH * self._collected_blocks


def _release_memory() -> None:
    """Return freed memory to the system, if the C library supports it."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
