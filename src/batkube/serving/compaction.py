"""Compaction of the watch history every five minutes (Kubernetes: apiserver/pkg/storage/etcd3/compact.go)."""

from __future__ import annotations

import contextlib
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Iterator

from batkube.cluster.store import Store

INTERVAL_S = 300.0


class Compaction:
    """Drops, at the end of each interval, the versions that existed before the interval began."""

    def __init__(self, loop: AbstractEventLoop, store: Store) -> None:
        self._loop = loop
        self._store = store
        self._version = store.version
        self._timer: TimerHandle | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Compact the store periodically while the block runs."""
        self._schedule()
        try:
            yield
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _schedule(self) -> None:
        self._timer = self._loop.call_later(INTERVAL_S, self._compact)

    def _compact(self) -> None:
        self._store.compact(self._version)
        self._version = self._store.version
        self._schedule()
