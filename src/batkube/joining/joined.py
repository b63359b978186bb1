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
from batkube.emulation.access import Access
from batkube.emulation.following import FollowedCollection
from batkube.emulation.sightings import WatchLine
from batkube.emulation.waiting import pause
from batkube.joining.mirror import Mirror, News
from batkube.joining.remote_client import RemoteClient
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant
from batkube.kernel.stopwatch import time_of_day
from batkube.kernel.streams import Streams
from batkube.timing.loop import Loop

#: How long news gathers before it is looked at.
_GATHER_S = 0.001
_ORDER = {NODE: 0, POD: 1}
_KINDS = {NODE: "Node", POD: "Pod"}
_decode = msgspec.json.decode

SchedulerMaker = Callable[[World, RemoteClient, EventRecorder], object]


class _List(msgspec.Struct):
    items: list[dict[str, object]] = []


class JoinedScheduler:
    """One scheduler, on one cluster."""

    def __init__(self, access: Access, component: str, maker: SchedulerMaker, *, seed: int = 0) -> None:
        """`maker` puts a scheduler on a world that is the cluster's mirror; `component` signs its events."""
        self._access = access
        self._news: queue.Queue[News | RunFailed] = queue.Queue()
        self._is_over = threading.Event()
        self.world = World(streams=Streams(seed))
        self._loop = Loop(self.world)
        self._mirror = Mirror(self.world.store)
        client = RemoteClient(access)
        maker(self.world, client, EventRecorder(self.world, client, component, as_series=True))

    def run(self) -> None:
        """Schedule until `stop`. Raises RunFailed if the cluster does not let it watch."""
        for kind in (NODE, POD):
            threading.Thread(target=self._followed(kind).follow, name=f"watch {kind}", daemon=True).start()
        first = [self._news.get() for _ in (NODE, POD)]
        self._act(first)
        while not self._is_over.is_set():
            self._act(self._gathered())

    def stop(self) -> None:
        """Let `run` return once what it does is done; may be called from another thread."""
        self._is_over.set()
        self._news.put(News(POD, []))

    def _gathered(self) -> list[News | RunFailed]:
        """Return what is heard next, nothing if something is due before."""
        due = self.world.agenda.due
        wait_s = None if due is None else max(due - time_of_day(), 0) / NANOSECONDS_PER_SECOND
        try:
            gathered = [self._news.get(timeout=wait_s)]
        except queue.Empty:
            return []
        pause(_GATHER_S)
        while not self._news.empty():
            gathered.append(self._news.get())
        return gathered

    def _act(self, gathered: list[News | RunFailed]) -> None:
        now = time_of_day()
        # What is due before the news has been waiting longer.
        news: list[News] = []
        for piece in gathered:
            if isinstance(piece, RunFailed):
                raise piece
            news.append(piece)
        for piece in sorted(news, key=lambda piece: _ORDER[piece.kind]):
            self._mirror.take(piece, now)
        self._loop.keep_until(Instant(max(now, self._loop.now)))

    def _followed(self, kind: str) -> FollowedCollection:
        def on_list(content: bytes) -> None:
            # What stands in a list does not say what it is; what a watch tells does.
            named = {"apiVersion": "v1", "kind": _KINDS[kind]}
            items = [{**named, **item} for item in _decode(content, type=_List).items]
            self._news.put(News(kind, items, is_list=True))

        def on_change(line: WatchLine) -> None:
            self._news.put(News(kind, [_decode(line.object)], is_deletion=line.type == "DELETED"))

        return FollowedCollection(
            self._access,
            f"/api/v1/{kind}",
            {},
            on_list=on_list,
            on_change=on_change,
            on_loss=self._news.put,
            is_over=self._is_over,
        )
