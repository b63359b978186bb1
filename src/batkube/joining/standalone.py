"""A scheduler that has joined a cluster: it hears by watches, decides on its mirror, and writes over HTTP.

A thread for each collection lists and watches; the main one takes their news, brings the mirror up to date, and keeps
what is due on the agenda. News gathers for a moment before it is looked at. On the clock of a run such a moment passes
only when everybody is idle, so that all that happened at one instant is there, in whatever order threads were run:
nodes are taken before pods, and results repeat.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import msgspec

from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.world import World
from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.client.polling import pause
from batkube.emulation.client.reflector import Reflector
from batkube.emulation.client.watch_events import WatchEvent
from batkube.joining.mirror import ClusterMirror, CollectionUpdate
from batkube.joining.remote_client import RemoteClient
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant
from batkube.kernel.stopwatch import wall_clock_instant
from batkube.kernel.streams import Streams
from batkube.timing.loop import Loop

#: How long news gathers before it is looked at.
_BATCH_WINDOW_S = 0.001
_UPDATE_ORDER = {NODE: 0, POD: 1}
_KINDS = {NODE: "Node", POD: "Pod"}
_decode = msgspec.json.decode

SchedulerFactory = Callable[[World, RemoteClient, EventRecorder], object]


class _ObjectList(msgspec.Struct):
    items: list[dict[str, object]] = []


class StandaloneScheduler:
    """One scheduler, on one cluster."""

    def __init__(self, access: ClusterConnection, component: str, maker: SchedulerFactory, *, seed: int = 0) -> None:
        """`maker` puts a scheduler on a world that is the cluster's mirror; `component` signs its events."""
        self._cluster = access
        self._updates: queue.Queue[CollectionUpdate | RunFailed] = queue.Queue()
        self._stop_event = threading.Event()
        self.world = World(streams=Streams(seed))
        self._loop = Loop(self.world)
        self._mirror = ClusterMirror(self.world.store)
        client = RemoteClient(access)
        maker(self.world, client, EventRecorder(self.world, client, component, as_series=True))

    def run(self) -> None:
        """Schedule until `stop`. Raises RunFailed if the cluster does not let it watch."""
        for kind in (NODE, POD):
            threading.Thread(target=self._reflector(kind).run, name=f"watch {kind}", daemon=True).start()
        first = [self._updates.get() for _ in (NODE, POD)]
        self._process_batch(first)
        while not self._stop_event.is_set():
            self._process_batch(self._next_batch())

    def stop(self) -> None:
        """Let `run` return once what it does is done; may be called from another thread."""
        self._stop_event.set()
        self._updates.put(CollectionUpdate(POD, []))

    def _next_batch(self) -> list[CollectionUpdate | RunFailed]:
        """Return what is heard next, nothing if something is due before."""
        due = self.world.agenda.due
        wait_s = None if due is None else max(due - wall_clock_instant(), 0) / NANOSECONDS_PER_SECOND
        try:
            gathered = [self._updates.get(timeout=wait_s)]
        except queue.Empty:
            return []
        pause(_BATCH_WINDOW_S)
        while not self._updates.empty():
            gathered.append(self._updates.get())
        return gathered

    def _process_batch(self, gathered: list[CollectionUpdate | RunFailed]) -> None:
        now = wall_clock_instant()
        # What is due before the news has been waiting longer.
        news: list[CollectionUpdate] = []
        for piece in gathered:
            if isinstance(piece, RunFailed):
                raise piece
            news.append(piece)
        for piece in sorted(news, key=lambda piece: _UPDATE_ORDER[piece.kind]):
            self._mirror.apply(piece, now)
        self._loop.run_until(Instant(max(now, self._loop.now)))

    def _reflector(self, kind: str) -> Reflector:
        def on_list(content: bytes) -> None:
            # What stands in a list does not say what it is; what a watch tells does.
            named = {"apiVersion": "v1", "kind": _KINDS[kind]}
            items = [{**named, **item} for item in _decode(content, type=_ObjectList).items]
            self._updates.put(CollectionUpdate(kind, items, is_list=True))

        def on_change(line: WatchEvent) -> None:
            self._updates.put(CollectionUpdate(kind, [_decode(line.object)], is_deletion=line.type == "DELETED"))

        return Reflector(
            self._cluster,
            f"/api/v1/{kind}",
            {},
            on_list=on_list,
            on_change=on_change,
            on_loss=self._updates.put,
            is_over=self._stop_event,
        )
