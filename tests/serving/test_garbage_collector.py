"""Garbage is collected while nothing changes."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import weakref
from collections import deque
from collections.abc import Callable
from unittest import mock

from batkube.serving import garbage_collector
from batkube.serving.garbage_collector import IdleGarbageCollector


class _Cycle:
    def __init__(self) -> None:
        self.itself = self


def _is_collected(changes: Callable[[int], int], ticks: int, keep: Callable[[], object] = lambda: None) -> bool:
    """Return whether an old reference cycle is freed after some ticks.

    `changes` returns the change counter at each tick, and the result of `keep` stays in memory.
    """

    async def run() -> bool:
        count = 0

        def next_change() -> int:
            nonlocal count
            count += 1
            return changes(count - 1)

        with IdleGarbageCollector(asyncio.get_running_loop(), next_change).running():
            used = _Cycle()
            gc.collect(1)
            cycle = weakref.ref(used)
            del used
            kept = keep()
            while count <= ticks:
                await asyncio.sleep(0)
            del kept
            return cycle() is None

    with (
        mock.patch.object(garbage_collector, "_TICK_S", 0.0),
        mock.patch.object(garbage_collector, "_YOUNG_TICK_S", 60),
    ):
        return asyncio.run(run())


def test_garbage_is_collected_once_nothing_changes() -> None:
    assert not _is_collected(lambda tick: min(tick, 3), ticks=3)
    assert _is_collected(lambda tick: min(tick, 3), ticks=4)


def test_without_any_change_nothing_is_collected() -> None:
    assert not _is_collected(lambda _: 0, ticks=50)


def test_a_full_collection_is_postponed_while_changes_occur_until_memory_has_grown() -> None:
    def grow() -> object:
        return [object() for _ in range(2 * sys.getallocatedblocks())]

    assert not _is_collected(lambda tick: tick, ticks=garbage_collector._MAX_TICKS)
    assert not _is_collected(lambda tick: tick, ticks=garbage_collector._MAX_TICKS - 1, keep=grow)
    assert _is_collected(lambda tick: tick, ticks=garbage_collector._MAX_TICKS, keep=grow)


def test_young_objects_are_collected_while_as_many_objects_are_freed_as_created() -> None:
    """Otherwise everything created since is visited at the next burst; at 100 pods per second that took seconds."""
    changes = itertools.count()

    async def largest_young_generation() -> int:
        recent = deque[list[object]](maxlen=1_000)
        largest = 0
        with IdleGarbageCollector(asyncio.get_running_loop(), lambda: next(changes)).running():
            for _ in range(100):
                for _ in range(1_000):
                    recent.append([[]])
                await asyncio.sleep(0)
                largest = max(largest, len(gc.get_objects(generation=0)) + len(gc.get_objects(generation=1)))
        return largest

    with mock.patch.object(garbage_collector, "_YOUNG_TICK_S", 0.0):
        assert asyncio.run(largest_young_generation()) < 10_000


def test_the_collector_settings_are_restored() -> None:
    before = gc.get_threshold()
    _is_collected(lambda _: 0, ticks=1)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
