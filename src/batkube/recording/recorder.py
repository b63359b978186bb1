"""Watches a cluster and writes what it sees into the log. It reads and never writes to the cluster.

A thread for each collection lists and watches it, and stamps what it hears at once; the main one tells the log. Only
what changes for a replay makes a line: a node's signs of life do not.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable

import msgspec

from batkube.cluster.mapping import ANNOTATION_SPEED
from batkube.cluster.pods import TERMINAL_PHASES
from batkube.cluster.store import KubeObject
from batkube.emulation.access import Access
from batkube.emulation.following import FollowedCollection
from batkube.emulation.sightings import WatchLine, items_of, pod_life
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant
from batkube.kernel.stopwatch import Stopwatch, time_of_day
from batkube.recording.descriptions import Names, described_job, described_node, described_pod
from batkube.recording.log import (
    JobSighting,
    Line,
    NodeSighting,
    PodSighting,
    RecordingLog,
    SessionBegun,
    SessionEnded,
)

_decode = msgspec.json.decode
#: The main thread looks up at least so often: until then it does not hear of Ctrl-C on every system.
_LOOK_UP_S = 0.5


class _Report(msgspec.Struct, frozen=True):
    """What a thread heard of its collection: one object that changed, or all there are."""

    at: Instant
    objects: list[msgspec.Raw]
    is_list: bool = False
    is_gone: bool = False


_Take = Callable[[_Report], None]


class ClusterWatch:
    """One session of a recording."""

    def __init__(self, access: Access, namespace: str = "") -> None:
        """Only what is in `namespace` is recorded, or everything if there is none."""
        self._access = access
        self._is_over = threading.Event()
        self._news: queue.SimpleQueue[tuple[_Take, _Report] | RunFailed] = queue.SimpleQueue()
        inside = f"/namespaces/{namespace}" if namespace else ""
        self._collections: dict[str, _Take] = {
            "/api/v1/nodes": self._take_nodes,
            f"/apis/batch/v1{inside}/jobs": self._take_jobs,
            f"/api/v1{inside}/pods": self._take_pods,
        }
        self._log: RecordingLog | None = None
        self._names = Names("")
        #: The last sighting of all that is there.
        self._nodes: dict[str, NodeSighting] = {}
        self._pods: dict[str, PodSighting] = {}
        self._jobs: set[str] = set()

    def ask(self) -> None:
        """Find out whether the cluster answers, and lets us read what is to be recorded. Raises RunFailed."""
        for path in self._collections:
            self._access.text(path, limit=1)

    def record(self, log: RecordingLog, earlier: Iterable[Line], names: Names, length: Duration | None) -> None:
        """Record until the time is over or somebody interrupts it; `earlier` is what the log holds already.

        Raises RunFailed if the cluster does not let us.
        """
        self._log, self._names = log, names
        for line in earlier:
            self._remember(line)
        begin = time_of_day()
        nodes = [_decode(content) for content in items_of(self._access.text("/api/v1/nodes"))]
        log.add(SessionBegun(begin, _speed(nodes)))
        watch = Stopwatch()
        try:
            for path, take in self._collections.items():
                threading.Thread(target=self._followed(path, take).follow, name=f"watch {path}", daemon=True).start()
            while length is None or watch.real_s * NANOSECONDS_PER_SECOND < length:
                self._take_next()
        except KeyboardInterrupt:
            pass
        finally:
            self._is_over.set()
            log.add(SessionEnded(time_of_day()))

    def _take_next(self) -> None:
        try:
            news = self._news.get(timeout=_LOOK_UP_S)
        except queue.Empty:
            return
        if isinstance(news, RunFailed):
            raise news
        take, report = news
        take(report)

    def _followed(self, path: str, take: _Take) -> FollowedCollection:
        def on_list(content: bytes) -> None:
            self._news.put((take, _Report(time_of_day(), items_of(content), is_list=True)))

        def on_change(line: WatchLine) -> None:
            self._news.put((take, _Report(time_of_day(), [line.object], is_gone=line.type == "DELETED")))

        return FollowedCollection(
            self._access,
            path,
            {},
            on_list=on_list,
            on_change=on_change,
            on_loss=self._news.put,
            is_over=self._is_over,
        )

    def _take_nodes(self, news: _Report) -> None:
        present = [described_node(_decode(content), self._names, news.at) for content in news.objects]
        for node in present:
            known = self._nodes.get(node.name)
            if news.is_gone:
                if known is not None:
                    self._tell(NodeSighting(at=news.at, name=node.name, is_gone=True))
            elif known is None or msgspec.structs.replace(node, at=known.at) != known:
                self._tell(node)
        if news.is_list:
            for name in self._nodes.keys() - {node.name for node in present}:
                self._tell(NodeSighting(at=news.at, name=name, is_gone=True))

    def _take_jobs(self, news: _Report) -> None:
        for content in news.objects:
            job = described_job(_decode(content), self._names, news.at)
            if job.uid not in self._jobs:
                self._tell(job)

    def _take_pods(self, news: _Report) -> None:
        present: set[str] = set()
        for content in news.objects:
            pod: KubeObject = _decode(content)
            uid = str(pod["metadata"]["uid"])
            present.add(uid)
            known = self._pods.get(uid)
            # What went between a list and its watch, or is over and told, need not be told again.
            if known is None and news.is_gone:
                continue
            sighting = self._sighting(uid, pod, content, news, is_new=known is None)
            if known is None or _state(sighting) != _state(known):
                self._tell(sighting)
        if news.is_list:
            for uid in sorted(self._pods.keys() - present):
                self._tell(PodSighting(at=news.at, uid=uid, is_listed=True, is_gone=True))

    def _sighting(self, uid: str, pod: KubeObject, content: msgspec.Raw, news: _Report, *, is_new: bool) -> PodSighting:
        life = pod_life(content)
        return PodSighting(
            at=news.at,
            uid=uid,
            is_listed=news.is_list,
            is_gone=news.is_gone,
            node=self._names.of("node", str(pod["spec"].get("nodeName") or "")),
            has_started=life.has_started,
            has_finished=life.phase in TERMINAL_PHASES,
            started_at=life.started_at,
            finished_at=life.finished_at,
            exit_code=life.exit_code,
            description=described_pod(pod, self._names) if is_new else None,
        )

    def _tell(self, line: PodSighting | NodeSighting | JobSighting) -> None:
        assert self._log is not None, "news comes while it records"
        self._log.add(line)
        self._remember(line)

    def _remember(self, line: Line) -> None:
        if isinstance(line, JobSighting):
            self._jobs.add(line.uid)
        elif isinstance(line, NodeSighting):
            if line.is_gone:
                self._nodes.pop(line.name, None)
            else:
                self._nodes[line.name] = line
        elif isinstance(line, PodSighting):
            if line.is_gone:
                self._pods.pop(line.uid, None)
            else:
                self._pods[line.uid] = line


def _state(sighting: PodSighting) -> tuple[object, ...]:
    return (
        sighting.is_gone,
        sighting.node,
        sighting.has_started,
        sighting.has_finished,
        sighting.started_at,
        sighting.finished_at,
        sighting.exit_code,
    )


def _speed(nodes: Iterable[KubeObject]) -> float:
    """Return how fast the cluster's time goes, which a simulated one tells on its nodes."""
    speeds = [(node["metadata"].get("annotations") or {}).get(ANNOTATION_SPEED) for node in nodes]
    return next((float(speed) for speed in speeds if speed), 1.0)
