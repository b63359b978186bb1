"""Read the audit log of a kube-apiserver: one JSON document (`Event` of audit.k8s.io/v1) per line.

A pod is submitted when its create request completes. It starts and ends as the kubelet reports in `pods/status`, and it
is deleted when the delete request completes. This needs the audit level Request or RequestResponse for pods, because
at Metadata the log does not contain the objects.

Kubernetes: docs/tasks/debug/debug-cluster/audit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Instant, instant_of
from batkube.workloads.fields import Place
from batkube.workloads.files import open_lines
from batkube.workloads.formats.kubernetes.pod_histories import PodHistory, history_of, workload_from_histories
from batkube.workloads.model import Workload

AUDIT_GROUP = "audit.k8s.io"
POD_NOT_LOGGED = FidelityNote(
    "workload", "a created pod is left out, because the log does not contain it (level Metadata, or omitted)"
)
_REMEDY = "set the level of pods and pods/status in the audit policy to Request or RequestResponse"


def read_audit_log(path: Path, name: str) -> Workload:
    """Read the pods whose creation, start and end are in the log as the workload `name`. Raises InputError."""
    pods = _AuditedPods(path)
    with open_lines(path) as text:
        for number, line in enumerate(text, 1):
            if line.strip():
                pods.add_line(number, line)
    if not pods.histories and not pods.notes:
        raise InputError(path, problem="contains no creation of a pod", remedy=_REMEDY)
    return workload_from_histories(pods.histories, path, name, pods.notes)


class _AuditedPods:
    """Tracks pods through the events of a log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._live_pods: dict[tuple[str, str], PodHistory] = {}
        self.histories: list[PodHistory] = []
        self.notes: Counter[FidelityNote] = Counter()

    def add_line(self, number: int, line: str) -> None:
        """Process one line. Raises InputError if it is not an audit event."""
        try:
            event: Any = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            remedy = "use the log as kube-apiserver writes it, one document per line (--audit-log-format=json)"
            raise InputError(self._path, at=f"line {number}", problem=f"is not JSON: {error}", remedy=remedy) from None
        if not isinstance(event, Mapping) or AUDIT_GROUP not in str(event.get("apiVersion")):
            problem = f"is not an Event of {AUDIT_GROUP}"
            raise InputError(self._path, at=f"line {number}", problem=problem, remedy="use kube-apiserver's audit log")
        reference = event.get("objectRef")
        if event.get("stage") != "ResponseComplete" or not isinstance(reference, Mapping):
            return
        code = (event.get("responseStatus") or {}).get("code", 200)
        if reference.get("resource") == "pods" and not reference.get("apiGroup") and 200 <= code < 300:
            self._handle_pod_event(Place(self._path) / f"line {number}", event, reference)

    def _handle_pod_event(self, place: Place, event: Mapping[str, Any], reference: Mapping[str, Any]) -> None:
        verb, subresource, at = event.get("verb"), reference.get("subresource"), self._time(place, event)
        response, request = event.get("responseObject"), event.get("requestObject")
        key = (str(reference.get("namespace") or "default"), str(reference.get("name") or _name(response, request)))
        history = self._live_pods.get(key)
        if verb == "create" and not subresource:
            self._handle_creation(place, key, at, response, request)
        elif history is None:
            return
        elif subresource == "status" and verb in ("update", "patch"):
            for body in (response, request):
                if isinstance(body, Mapping) and isinstance(body.get("status"), Mapping):
                    history.update_from_status(body["status"], at)
        elif verb == "delete" and not subresource:
            # A running pod is deleted twice: the first request starts its graceful termination, and the kubelet
            # sends the last one once the containers have stopped (pkg/kubelet/status/status_manager.go, syncPod).
            if history.started is not None and (history.finished is None or history.is_deleted):
                history.finished, history.is_deleted = at, True
            elif history.started is None:
                del self._live_pods[key]

    def _handle_creation(
        self, place: Place, key: tuple[str, str], at: Instant, response: object, request: object
    ) -> None:
        pod = next((body for body in (response, request) if isinstance(body, Mapping) and body.get("spec")), None)
        if pod is None:
            self.notes[POD_NOT_LOGGED] += 1
            return
        metadata = pod.get("metadata")
        full_metadata = {**(metadata if isinstance(metadata, Mapping) else {}), "name": key[1], "namespace": key[0]}
        history = history_of(place, {**pod, "metadata": full_metadata}, at)
        self._live_pods[key] = history
        self.histories.append(history)

    def _time(self, place: Place, event: Mapping[str, Any]) -> Instant:
        stamp = event.get("stageTimestamp") or event.get("requestReceivedTimestamp")
        try:
            return instant_of(str(stamp))
        except ValueError:
            place.reject(f"has the stageTimestamp {stamp!r}, which is not a time", "use kube-apiserver's audit log")


def _name(*objects: object) -> str:
    """Return the first name. With generateName, only the response has one."""
    for body in objects:
        metadata = body.get("metadata") if isinstance(body, Mapping) else None
        if isinstance(metadata, Mapping) and metadata.get("name"):
            return str(metadata["name"])
    return ""
