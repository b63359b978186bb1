"""Reading the audit log of a kube-apiserver: who asked for what, one JSON document in a line.

Pods come when their creation is answered, begin and end as the kubelet reports it (`pods/status`), and are gone when
their deletion is answered. That needs pods at the level Request or RequestResponse: at Metadata the log tells of
requests and not what they held.

Kubernetes: docs/tasks/debug/debug-cluster/audit; the documents are `Event`s of audit.k8s.io/v1.
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
    "workload", "a pod was created and the log does not hold it (level Metadata, or omitted): it is left out"
)
_REMEDY = "have the audit policy log pods, and pods/status, at level Request or RequestResponse"


def read_audit_log(path: Path, name: str) -> Workload:
    """Return the pods whose whole life the log tells as a workload called `name`. Raises InputError."""
    pods = _AuditedPods(path)
    with open_lines(path) as text:
        for number, line in enumerate(text, 1):
            if line.strip():
                pods.add_line(number, line)
    if not pods.histories and not pods.notes:
        raise InputError(path, problem="tells of no pod that was created", remedy=_REMEDY)
    return workload_from_histories(pods.histories, path, name, pods.notes)


class _AuditedPods:
    """Follows the pods of a log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._live_pods: dict[tuple[str, str], PodHistory] = {}
        self.histories: list[PodHistory] = []
        self.notes: Counter[FidelityNote] = Counter()

    def add_line(self, number: int, line: str) -> None:
        """Take a line. Raises InputError when it is no document of an audit log."""
        try:
            event: Any = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            remedy = "give the log as kube-apiserver writes it, one document in a line (--audit-log-format=json)"
            raise InputError(self._path, at=f"line {number}", problem=f"is not JSON: {error}", remedy=remedy) from None
        if not isinstance(event, Mapping) or AUDIT_GROUP not in str(event.get("apiVersion")):
            problem = f"is no event of {AUDIT_GROUP}"
            raise InputError(self._path, at=f"line {number}", problem=problem, remedy="give kube-apiserver's audit log")
        reference = event.get("objectRef")
        if event.get("stage") != "ResponseComplete" or not isinstance(reference, Mapping):
            return
        code = (event.get("responseStatus") or {}).get("code", 200)
        if reference.get("resource") == "pods" and not reference.get("apiGroup") and 200 <= code < 300:
            self._handle_pod_event(Place(self._path) / f"line {number}", event, reference)

    def _handle_pod_event(self, place: Place, event: Mapping[str, Any], reference: Mapping[str, Any]) -> None:
        verb, part, at = event.get("verb"), reference.get("subresource"), self._time(place, event)
        answer, request = event.get("responseObject"), event.get("requestObject")
        key = (str(reference.get("namespace") or "default"), str(reference.get("name") or _name(answer, request)))
        course = self._live_pods.get(key)
        if verb == "create" and not part:
            self._handle_creation(place, key, at, answer, request)
        elif course is None:
            return
        elif part == "status" and verb in ("update", "patch"):
            for one in (answer, request):
                if isinstance(one, Mapping) and isinstance(one.get("status"), Mapping):
                    course.update_from_status(one["status"], at)
        elif verb == "delete" and not part:
            # The first deletion of a running pod announces its end; the last is the kubelet's, once it has stopped.
            if course.started is not None and (course.finished is None or course.is_deleted):
                course.finished, course.is_deleted = at, True
            elif course.started is None:
                del self._live_pods[key]

    def _handle_creation(
        self, place: Place, key: tuple[str, str], at: Instant, answer: object, request: object
    ) -> None:
        pod = next((one for one in (answer, request) if isinstance(one, Mapping) and one.get("spec")), None)
        if pod is None:
            self.notes[POD_NOT_LOGGED] += 1
            return
        metadata = pod.get("metadata")
        named = {**(metadata if isinstance(metadata, Mapping) else {}), "name": key[1], "namespace": key[0]}
        course = history_of(place, {**pod, "metadata": named}, at)
        self._live_pods[key] = course
        self.histories.append(course)

    def _time(self, place: Place, event: Mapping[str, Any]) -> Instant:
        stamp = event.get("stageTimestamp") or event.get("requestReceivedTimestamp")
        try:
            return instant_of(str(stamp))
        except ValueError:
            place.reject(f"its stageTimestamp is {stamp!r}, which is no time", "give kube-apiserver's audit log")


def _name(*objects: object) -> str:
    """Return the name of the first of these that has one: of a pod by generateName, only the answer does."""
    for one in objects:
        metadata = one.get("metadata") if isinstance(one, Mapping) else None
        if isinstance(metadata, Mapping) and metadata.get("name"):
            return str(metadata["name"])
    return ""
