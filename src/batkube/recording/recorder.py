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
from batkube.cluster.pods.accessors import TERMINAL_PHASES
from batkube.cluster.store import KubeObject
from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.client.reflector import Reflector
from batkube.emulation.client.watch_events import WatchEvent, items_of, pod_progress_of
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant
from batkube.kernel.stopwatch import Stopwatch, wall_clock_instant
from batkube.recording.descriptions import NameAnonymiser, job_observation_of, node_observation_of, pod_description_of
from batkube.recording.log import (
    JobObservation,
    Line,
    NodeObservation,
    PodObservation,
    RecordingLog,
    SessionEnd,
    SessionStart,
)

_decode = msgspec.json.decode
#: The main thread looks up at least so often: until then it does not hear of Ctrl-C on every system.
_POLL_INTERVAL_S = 0.5


class _CollectionUpdate(msgspec.Struct, frozen=True):
    """What a thread heard of its collection: one object that changed, or all there are."""

    at: Instant
    objects: list[msgspec.Raw]
    is_list: bool = False
    is_gone: bool = False


_UpdateHandler = Callable[[_CollectionUpdate], None]


class ClusterRecorder:
    """One session of a recording."""

    def __init__(self, access: ClusterConnection, namespace: str = "") -> None:
        """Only what is in `namespace` is recorded, or everything if there is none."""
        self._cluster = access
        self._stop_event = threading.Event()
        self._updates: queue.SimpleQueue[tuple[_UpdateHandler, _CollectionUpdate] | RunFailed] = queue.SimpleQueue()
        inside = f"/namespaces/{namespace}" if namespace else ""
        self._collections: dict[str, _UpdateHandler] = {
            "/api/v1/nodes": self._on_nodes,
            f"/apis/batch/v1{inside}/jobs": self._on_jobs,
            f"/api/v1{inside}/pods": self._on_pods,
        }
        self._log: RecordingLog | None = None
        self._anonymiser = NameAnonymiser("")
        #: The last sighting of all that is there.
        self._nodes: dict[str, NodeObservation] = {}
        self._pods: dict[str, PodObservation] = {}
        self._jobs: set[str] = set()

    def check_access(self) -> None:
        """Find out whether the cluster answers, and lets us read what is to be recorded. Raises RunFailed."""
        for path in self._collections:
            self._cluster.get_bytes(path, limit=1)

    def record(
        self, log: RecordingLog, earlier: Iterable[Line], names: NameAnonymiser, length: Duration | None
    ) -> None:
        """Record until the time is over or somebody interrupts it; `earlier` is what the log holds already.

        Raises RunFailed if the cluster does not let us.
        """
        self._log, self._anonymiser = log, names
        for line in earlier:
            self._apply(line)
        begin = wall_clock_instant()
        nodes = [_decode(content) for content in items_of(self._cluster.get_bytes("/api/v1/nodes"))]
        log.append(SessionStart(begin, _clock_speed(nodes)))
        watch = Stopwatch()
        try:
            for path, take in self._collections.items():
                threading.Thread(target=self._reflector(path, take).run, name=f"watch {path}", daemon=True).start()
            while length is None or watch.real_s * NANOSECONDS_PER_SECOND < length:
                self._process_next()
        except KeyboardInterrupt:
            pass
        finally:
            self._stop_event.set()
            log.append(SessionEnd(wall_clock_instant()))

    def _process_next(self) -> None:
        try:
            news = self._updates.get(timeout=_POLL_INTERVAL_S)
        except queue.Empty:
            return
        if isinstance(news, RunFailed):
            raise news
        take, report = news
        take(report)

    def _reflector(self, path: str, take: _UpdateHandler) -> Reflector:
        def on_list(content: bytes) -> None:
            self._updates.put((take, _CollectionUpdate(wall_clock_instant(), items_of(content), is_list=True)))

        def on_change(line: WatchEvent) -> None:
            self._updates.put(
                (take, _CollectionUpdate(wall_clock_instant(), [line.object], is_gone=line.type == "DELETED"))
            )

        return Reflector(
            self._cluster,
            path,
            {},
            on_list=on_list,
            on_change=on_change,
            on_loss=self._updates.put,
            is_over=self._stop_event,
        )

    def _on_nodes(self, news: _CollectionUpdate) -> None:
        present = [node_observation_of(_decode(content), self._anonymiser, news.at) for content in news.objects]
        for node in present:
            known = self._nodes.get(node.name)
            if news.is_gone:
                if known is not None:
                    self._write(NodeObservation(at=news.at, name=node.name, is_gone=True))
            elif known is None or msgspec.structs.replace(node, at=known.at) != known:
                self._write(node)
        if news.is_list:
            for name in self._nodes.keys() - {node.name for node in present}:
                self._write(NodeObservation(at=news.at, name=name, is_gone=True))

    def _on_jobs(self, news: _CollectionUpdate) -> None:
        for content in news.objects:
            job = job_observation_of(_decode(content), self._anonymiser, news.at)
            if job.uid not in self._jobs:
                self._write(job)

    def _on_pods(self, news: _CollectionUpdate) -> None:
        present: set[str] = set()
        for content in news.objects:
            pod: KubeObject = _decode(content)
            uid = str(pod["metadata"]["uid"])
            present.add(uid)
            known = self._pods.get(uid)
            # What went between a list and its watch, or is over and told, need not be told again.
            if known is None and news.is_gone:
                continue
            sighting = self._observation(uid, pod, content, news, is_new=known is None)
            if known is None or _comparable_state(sighting) != _comparable_state(known):
                self._write(sighting)
        if news.is_list:
            for uid in sorted(self._pods.keys() - present):
                self._write(PodObservation(at=news.at, uid=uid, is_listed=True, is_gone=True))

    def _observation(
        self, uid: str, pod: KubeObject, content: msgspec.Raw, news: _CollectionUpdate, *, is_new: bool
    ) -> PodObservation:
        life = pod_progress_of(content)
        return PodObservation(
            at=news.at,
            uid=uid,
            is_listed=news.is_list,
            is_gone=news.is_gone,
            node=self._anonymiser.anonymise("node", str(pod["spec"].get("nodeName") or "")),
            has_started=life.has_started,
            has_finished=life.phase in TERMINAL_PHASES,
            started_at=life.started_at,
            finished_at=life.finished_at,
            exit_code=life.exit_code,
            description=pod_description_of(pod, self._anonymiser) if is_new else None,
        )

    def _write(self, line: PodObservation | NodeObservation | JobObservation) -> None:
        assert self._log is not None, "news comes while it records"
        self._log.append(line)
        self._apply(line)

    def _apply(self, line: Line) -> None:
        if isinstance(line, JobObservation):
            self._jobs.add(line.uid)
        elif isinstance(line, NodeObservation):
            if line.is_gone:
                self._nodes.pop(line.name, None)
            else:
                self._nodes[line.name] = line
        elif isinstance(line, PodObservation):
            if line.is_gone:
                self._pods.pop(line.uid, None)
            else:
                self._pods[line.uid] = line


def _comparable_state(sighting: PodObservation) -> tuple[object, ...]:
    return (
        sighting.is_gone,
        sighting.node,
        sighting.has_started,
        sighting.has_finished,
        sighting.started_at,
        sighting.finished_at,
        sighting.exit_code,
    )


def _clock_speed(nodes: Iterable[KubeObject]) -> float:
    """Return how fast the cluster's time goes, which a simulated one tells on its nodes."""
    speeds = [(node["metadata"].get("annotations") or {}).get(ANNOTATION_SPEED) for node in nodes]
    return next((float(speed) for speed in speeds if speed), 1.0)
