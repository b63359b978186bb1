"""Watch a cluster and write its changes to the log. The cluster is only read, never written.

A thread per collection timestamps each update on arrival; the main thread writes the log. Only changes that affect a
replay are written: heartbeats of nodes are not.
"""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Iterable

import msgspec

from batkube.cluster.mapping import ANNOTATION_SPEED
from batkube.cluster.pods.accessors import TERMINAL_PHASES
from batkube.cluster.store import KubeObject
from batkube.emulation.client.connection import ClusterConnection, expected_shape
from batkube.emulation.client.reflector import CollectionUpdate, Reflector
from batkube.emulation.client.watch_events import items_of, pod_progress_of
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant
from batkube.kernel.stopwatch import Stopwatch, wall_clock_instant
from batkube.recording.descriptions import (
    NameAnonymiser,
    job_observation_of,
    node_observation_of,
    pod_description_of,
    timestamp,
)
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
#: The longest time that the main thread waits: on some systems, a wait without a timeout delays Ctrl-C.
_POLL_INTERVAL_S = 0.5


#: A watch is not read while so many updates are queued.
_MAX_QUEUED = 1000
#: Handles an update that arrived at an instant.
_UpdateHandler = Callable[[CollectionUpdate, Instant], None]


class ClusterRecorder:
    """Records one session."""

    def __init__(self, cluster: ClusterConnection, namespace: str = "") -> None:
        """Record only the pods and Jobs of `namespace`, or those of all namespaces if it is ""."""
        self._cluster = cluster
        self._stop_event = threading.Event()
        self._updates: queue.Queue[tuple[_UpdateHandler, CollectionUpdate, Instant] | RunFailed]
        self._updates = queue.Queue(_MAX_QUEUED)
        scope = f"/namespaces/{namespace}" if namespace else ""
        self._collections: dict[str, _UpdateHandler] = {
            "/api/v1/nodes": self._on_nodes,
            f"/apis/batch/v1{scope}/jobs": self._on_jobs,
            f"/api/v1{scope}/pods": self._on_pods,
        }
        self._log: RecordingLog | None = None
        self._anonymiser = NameAnonymiser("")
        #: The last observations of existing objects.
        self._nodes: dict[str, NodeObservation] = {}
        self._pods: dict[str, PodObservation] = {}
        self._jobs: set[str] = set()

    def check_access(self) -> None:
        """Check that the cluster responds and that the user may list the collections. Raises RunFailed."""
        for path in self._collections:
            self._cluster.get_bytes(path, limit=1)

    def record(
        self, log: RecordingLog, earlier: Iterable[Line], anonymiser: NameAnonymiser, length: Duration | None
    ) -> None:
        """Record for `length`, or until interrupted; `earlier` are the lines that the log already has.

        Raises RunFailed if the cluster rejects a request.
        """
        self._log, self._anonymiser = log, anonymiser
        for line in earlier:
            self._apply(line)
        begin = wall_clock_instant()
        content = self._cluster.get_bytes("/api/v1/nodes")
        with expected_shape("/api/v1/nodes"):
            speed = _clock_speed([_decode(node) for node in items_of(content)])
        log.append(SessionStart(begin, speed))
        stopwatch = Stopwatch()
        try:
            for path, handler in self._collections.items():
                self._watch(path, handler)
            while length is None or stopwatch.real_s * NANOSECONDS_PER_SECOND < length:
                self._process_next()
        except KeyboardInterrupt:
            pass
        finally:
            self._stop_event.set()
            log.append(SessionEnd(wall_clock_instant()))

    def _process_next(self) -> None:
        try:
            message = self._updates.get(timeout=_POLL_INTERVAL_S)
        except queue.Empty:
            return
        if isinstance(message, RunFailed):
            raise message
        handler, update, at = message
        with expected_shape("an object of the cluster"):
            handler(update, at)

    def _watch(self, path: str, handler: _UpdateHandler) -> None:
        Reflector(
            self._cluster,
            path,
            on_update=lambda update: self._updates.put((handler, update, wall_clock_instant())),
            on_failure=self._updates.put,
            stop_event=self._stop_event,
        ).start()

    def _on_nodes(self, update: CollectionUpdate, at: Instant) -> None:
        nodes = [node_observation_of(_decode(content), self._anonymiser, at) for content in update.objects]
        for node in nodes:
            previous = self._nodes.get(node.name)
            if update.is_deletion:
                if previous is not None:
                    self._write(NodeObservation(at=at, name=node.name, is_gone=True))
            elif previous is None or msgspec.structs.replace(node, at=previous.at) != previous:
                self._write(node)
        if update.is_list:
            for name in self._nodes.keys() - {node.name for node in nodes}:
                self._write(NodeObservation(at=at, name=name, is_gone=True))

    def _on_jobs(self, update: CollectionUpdate, at: Instant) -> None:
        for content in update.objects:
            job = job_observation_of(_decode(content), self._anonymiser, at)
            if job.uid not in self._jobs:
                self._write(job)

    def _on_pods(self, update: CollectionUpdate, at: Instant) -> None:
        uids: set[str] = set()
        for content in update.objects:
            pod: KubeObject = _decode(content)
            uid = str(pod["metadata"]["uid"])
            uids.add(uid)
            previous = self._pods.get(uid)
            # A pod that was never observed, or whose deletion is already recorded.
            if previous is None and update.is_deletion:
                continue
            observation = self._observation(uid, pod, content, update, at, is_new=previous is None)
            if previous is None or _comparable_state(observation) != _comparable_state(previous):
                self._write(observation)
        if update.is_list:
            for uid in sorted(self._pods.keys() - uids):
                self._write(PodObservation(at=at, uid=uid, is_listed=True, is_gone=True))

    def _observation(
        self, uid: str, pod: KubeObject, content: msgspec.Raw, update: CollectionUpdate, at: Instant, *, is_new: bool
    ) -> PodObservation:
        progress = pod_progress_of(content)
        return PodObservation(
            at=at,
            uid=uid,
            is_listed=update.is_list,
            is_gone=update.is_deletion,
            node=self._anonymiser.anonymise("node", str(pod["spec"].get("nodeName") or "")),
            has_started=progress.has_started,
            has_finished=progress.phase in TERMINAL_PHASES,
            started_at=timestamp(progress.started_at),
            finished_at=timestamp(progress.finished_at),
            exit_code=progress.exit_code,
            description=pod_description_of(pod, self._anonymiser) if is_new else None,
        )

    def _write(self, line: PodObservation | NodeObservation | JobObservation) -> None:
        assert self._log is not None, "an update arrived before the recording started"
        self._log.append(line)
        self._apply(line)

    def _apply(self, line: Line) -> None:
        """Update the last observations; lines of earlier sessions restore them."""
        match line:
            case JobObservation():
                self._jobs.add(line.uid)
            case NodeObservation(is_gone=True):
                self._nodes.pop(line.name, None)
            case NodeObservation():
                self._nodes[line.name] = line
            case PodObservation(is_gone=True):
                self._pods.pop(line.uid, None)
            case PodObservation():
                self._pods[line.uid] = line


def _comparable_state(observation: PodObservation) -> tuple[object, ...]:
    return (
        observation.is_gone,
        observation.node,
        observation.has_started,
        observation.has_finished,
        observation.started_at,
        observation.finished_at,
        observation.exit_code,
    )


def _clock_speed(nodes: Iterable[KubeObject]) -> float:
    """Return the cluster's seconds per real second; the nodes of a simulated cluster are annotated with it."""
    speeds = [(node["metadata"].get("annotations") or {}).get(ANNOTATION_SPEED) for node in nodes]
    speed = next((float(speed) for speed in speeds if speed), 1.0)
    if not 0 < speed < math.inf:
        raise ValueError(f"{ANNOTATION_SPEED} is {speed}, not a positive number")
    return speed
