"""Garbage is collected while nothing changes."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from unittest import mock

from batkube.serving import garbage_collector
from batkube.serving.garbage_collector import IdleGarbageCollector


class _Cycle:
    def __init__(self) -> None:
        self.itself = self


def _is_collected(changes: Callable[[int], int], ticks: int) -> bool:
    """Return whether a reference cycle is freed after some ticks; `changes` returns the change counter at each."""

    async def run() -> bool:
        count = 0

        def next_change() -> int:
            nonlocal count
            count += 1
            return changes(count - 1)

        with IdleGarbageCollector(asyncio.get_running_loop(), next_change).running():
            cycle = weakref.ref(_Cycle())
            while count <= ticks:
                await asyncio.sleep(0)
            return cycle() is None

    with mock.patch.object(garbage_collector, "_TICK_S", 0.0):
        return asyncio.run(run())


def test_garbage_is_collected_once_nothing_changes() -> None:
    assert not _is_collected(lambda tick: min(tick, 3), ticks=3)
    assert _is_collected(lambda tick: min(tick, 3), ticks=4)


def test_without_any_change_nothing_is_collected() -> None:
    assert not _is_collected(lambda _: 0, ticks=50)


def test_collection_is_postponed_while_changes_occur_but_not_for_ever() -> None:
    assert not _is_collected(lambda tick: tick, ticks=garbage_collector._MAX_TICKS - 1)
    assert _is_collected(lambda tick: tick, ticks=garbage_collector._MAX_TICKS)


def test_the_collector_settings_are_restored() -> None:
    before = gc.get_threshold()
    _is_collected(lambda _: 0, ticks=1)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
