"""A cluster for the fuzzer that answers `record` and `emulate` with mutated objects."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from batkube.emulation.client import watch_events
from batkube.emulation.client.connection import ClusterConnection, expected_shape
from batkube.emulation.client.reflector import CollectionUpdate, Reflector
from batkube.emulation.manifests import LABEL_NUMBER
from batkube.emulation.preflight import check_access, read_nodes
from batkube.emulation.settings import Emulation, JobKind
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import Instant
from batkube.recording.descriptions import NameAnonymiser
from batkube.recording.log import RecordingLog, RecordingSettings, SessionEnd, SessionStart, read_log
from batkube.recording.recorder import ClusterRecorder
from batkube.recording.replay import replay_of
from conformance.mutating import worse_bytes, worse_value
from conformance.placeholders import Json

_META = {"name": "n", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
_NODE = {
    "metadata": {**_META, "labels": {"a": "b"}, "annotations": {"batkube.io/speed": "2"}},
    "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "unschedulable": False},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
_STATE = {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-01-01T00:00:01Z", "finishedAt": None}}
_POD = {
    "metadata": {
        **_META,
        "namespace": "d",
        "labels": {LABEL_NUMBER: "0"},
        "ownerReferences": [{"kind": "Job", "uid": "j", "controller": True}],
    },
    "spec": {
        "nodeName": "n",
        "priority": 5,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
    },
    "status": {
        "phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}],
        "containerStatuses": [{"state": _STATE}, {"state": {"running": {"startedAt": "2026-01-01T00:00:02Z"}}}],
    },
}
_JOB = {"metadata": {**_META, "uid": "j"}, "spec": {"parallelism": 2, "completions": 2}}
_EVENT = {
    "metadata": _META,
    "involvedObject": {"kind": "Pod", "name": "n"},
    "reason": "FailedScheduling",
    "message": "no",
    "series": {"count": 3},
}
_ITEMS: dict[str, Json] = {"nodes": _NODE, "pods": _POD, "jobs": _JOB, "events": _EVENT}


class HostileCluster(ClusterConnection):
    """A connection to a server that answers every request; it opens no socket."""

    def __init__(self, chance: random.Random) -> None:
        self.url = "https://fuzz.io"
        self._chance = chance
        self.last = b""

    def watch(self, path: str, **query: str | int) -> Iterator[bytes]:
        """Yield a few events."""
        item = _ITEMS[path.rpartition("/")[2]]
        for kind in self._chance.choices(("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"), k=3):
            yield self._worse({"type": kind, "object": item})

    def _request(self, method: str, path: str, query: Mapping[str, str | int], body: bytes | None = None) -> bytes:
        name = path.rpartition("/")[2]
        if name in _ITEMS:
            return self._worse({"metadata": {"resourceVersion": "5"}, "items": [_ITEMS[name]] * 2})
        return self._worse({"gitVersion": "v1.34.0", "status": {"allowed": True}})

    def _worse(self, value: Json) -> bytes:
        chance = self._chance
        if chance.random() < 0.6:
            value = worse_value(value, chance)
        self.last = json.dumps(value).encode("utf-8", "surrogatepass")
        if chance.random() < 0.05:
            self.last = worse_bytes(self.last, chance)
        return self.last


def follow(cluster: HostileCluster, path: str, on_update: Callable[[CollectionUpdate], None]) -> None:
    """List and watch a collection once."""
    stop = threading.Event()

    def handle(update: CollectionUpdate) -> None:
        on_update(update)
        if not update.is_list:
            stop.set()

    def fail(error: RunFailed) -> None:
        stop.set()

    Reflector(cluster, path, on_update=handle, on_failure=fail, stop_event=stop, max_failures=0).run()


def record(cluster: HostileCluster, folder: Path, chance: random.Random) -> None:
    """Record the cluster, and replay the recording."""
    recorder = ClusterRecorder(cluster)
    path = folder / "recorded.jsonl"
    with path.open("wb") as file:
        log = RecordingLog(file)
        log.append(RecordingSettings(cluster.url, "", ""))
        log.append(SessionStart(Instant(10**18)))
        recorder._log, recorder._anonymiser = log, NameAnonymiser(chance.choice(("", "key")))
        for number, (name, handler) in enumerate(recorder._collections.items()):
            at = Instant(10**18 + number)
            follow(cluster, name, lambda update, handler=handler, at=at: handler(update, at))  # type: ignore[misc]
        log.append(SessionEnd(Instant(2 * 10**18)))
    replay_of(read_log(path), "recorded", gangs=True)


def emulate(cluster: HostileCluster, chance: random.Random) -> None:
    """Check the cluster as before an emulation, and follow its pods and events."""
    kind = chance.choice(list(JobKind))
    emulation = Emulation(workloads=(Path("w.json"),), kubeconfig=Path("kubeconfig"), kind=kind)
    for path, decode in (("/api/v1/pods", watch_events.pod_update_of), ("/api/v1/events", watch_events.pod_event_of)):

        def decode_all(update: CollectionUpdate, decode: Callable[..., object] = decode) -> None:
            for raw in update.objects:
                decode(raw, Instant(0), update.is_deletion)

        follow(cluster, path, decode_all)
    with expected_shape("version"):
        check_access(cluster, emulation, [])
    read_nodes(cluster, emulation, None)
