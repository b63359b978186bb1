"""Run a scheduler against a remote cluster: it watches a mirror of the cluster, and writes over HTTP.

A thread per collection lists and watches it. The main thread applies the updates to the mirror and runs due
appointments. It collects updates for a batch window before it applies them, nodes first. On the virtual clock of a run,
time advances only when all threads are idle, so a batch holds all updates of one instant, whatever the order of
threads, and results repeat.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.world import World
from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.client.polling import pause
from batkube.emulation.client.reflector import CollectionUpdate, Reflector
from batkube.joining.mirror import ClusterMirror
from batkube.joining.remote_client import RemoteClient
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant
from batkube.kernel.stopwatch import wall_clock_instant
from batkube.kernel.streams import Streams
from batkube.timing.loop import Loop

#: The time for which watch events are batched.
_BATCH_WINDOW_S = 0.001
#: The order in which the updates of a batch are applied.
_STORAGE_ORDER = (NODE, POD)

_Message = tuple[str, CollectionUpdate] | RunFailed
SchedulerFactory = Callable[[World, RemoteClient, EventRecorder], object]


class StandaloneScheduler:
    """Runs one scheduler against one cluster."""

    def __init__(
        self, cluster: ClusterConnection, component: str, create_scheduler: SchedulerFactory, *, seed: int = 0
    ) -> None:
        """Create a scheduler on a mirror of the cluster; `component` is the source of its Events."""
        self._cluster = cluster
        self._updates: queue.Queue[_Message] = queue.Queue()
        self._stop_event = threading.Event()
        self.world = World(streams=Streams(seed))
        self._loop = Loop(self.world)
        self._mirror = ClusterMirror(self.world.store)
        client = RemoteClient(cluster)
        create_scheduler(self.world, client, EventRecorder(self.world, client, component, as_series=True))

    def run(self) -> None:
        """Schedule until `stop`. Raises RunFailed if the cluster forbids the watches."""
        for storage in _STORAGE_ORDER:
            self._watch(storage)
        self._process_batch([self._updates.get() for _ in _STORAGE_ORDER])
        while not self._stop_event.is_set():
            self._process_batch(self._next_batch())

    def stop(self) -> None:
        """Make `run` return after its current step; may be called from another thread."""
        self._stop_event.set()
        self._updates.put((POD, CollectionUpdate([])))

    def _next_batch(self) -> list[_Message]:
        """Wait for updates, and return those of one batch window; none if an appointment is due before."""
        due = self.world.agenda.due
        timeout_s = None if due is None else max(due - wall_clock_instant(), 0) / NANOSECONDS_PER_SECOND
        try:
            batch = [self._updates.get(timeout=timeout_s)]
        except queue.Empty:
            return []
        pause(_BATCH_WINDOW_S)
        while not self._updates.empty():
            batch.append(self._updates.get())
        return batch

    def _process_batch(self, batch: list[_Message]) -> None:
        now = wall_clock_instant()
        updates: list[tuple[str, CollectionUpdate]] = []
        for message in batch:
            if isinstance(message, RunFailed):
                raise message
            updates.append(message)
        for storage, update in sorted(updates, key=lambda entry: _STORAGE_ORDER.index(entry[0])):
            self._mirror.apply(storage, update, now)
        self._loop.run_until(Instant(max(now, self._loop.now)))

    def _watch(self, storage: str) -> None:
        Reflector(
            self._cluster,
            f"/api/v1/{storage}",
            on_update=lambda update: self._updates.put((storage, update)),
            on_failure=self._updates.put,
            stop_event=self._stop_event,
        ).start()
