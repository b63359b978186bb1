"""Convert recorded pods of a cluster (audit log or pod list) to jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, instant_of
from batkube.workloads import fields as require
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.fields import Place
from batkube.workloads.formats.kubernetes.pod_requests import read_pod_requests
from batkube.workloads.model import Job, Requests, Workload
from batkube.workloads.names import name_problem

#: Pods that belong to their node and not to a workload: of a DaemonSet, or static pods of the kubelet.
_NODE_OWNER_KINDS, _MIRROR_ANNOTATION = ("DaemonSet", "Node"), "kubernetes.io/config.mirror"
_PLACEMENT_FIELDS = ("nodeSelector", "affinity", "topologySpreadConstraints")

NOT_STARTED = FidelityNote("workload", "a pod had not started, so its run time is unknown: it is left out")
NOT_FINISHED = FidelityNote("workload", "a pod had not ended, so its run time is unknown: it is left out")
DELETED_WHILE_RUNNING = FidelityNote("workload", "a pod was deleted while it ran; here it ends then, and succeeds")
NODE_POD = FidelityNote("workload", "a pod belongs to its node (DaemonSet, static pod) and is left out")
PLACEMENT_LOST = FidelityNote(
    "workload", "a pod has placement constraints (selectors, affinity, …), which jobs cannot express: they are lost"
)


@dataclass(slots=True)
class PodHistory:
    """The recorded times and properties of a pod."""

    place: Place
    name: str
    namespace: str
    spec: Mapping[str, object]
    created: Instant
    is_node_pod: bool
    started: Instant | None = None
    finished: Instant | None = None
    #: Whether it ended because it was deleted.
    is_deleted: bool = False
    exit_code: int = 0

    def update_from_status(self, status: Mapping[str, Any], at: Instant | None = None) -> None:
        """Update start and end from a status; `at` replaces times that the status lacks."""
        statuses = [item for item in status.get("containerStatuses") or () if isinstance(item, Mapping)]
        states = [item.get("state") or {} for item in statuses]
        phase = status.get("phase")
        begins = [time for state in states if (time := _started_at(state)) is not None]
        if self.started is None and (len(begins) == len(states) > 0 or (phase == "Running" and at is not None)):
            # A pod starts its work once all its containers run.
            self.started = max(begins, default=at)
        if self.finished is None and phase in ("Succeeded", "Failed"):
            ends = [state["terminated"] for state in states if isinstance(state.get("terminated"), Mapping)]
            times = [time for end in ends if (time := _time(end.get("finishedAt"))) is not None]
            self.finished = max(times, default=at)
            self.exit_code = max((int(end.get("exitCode") or 0) for end in ends), default=int(phase == "Failed"))


def history_of(place: Place, pod: Mapping[str, Any], created: Instant | None = None) -> PodHistory:
    """Start the history of a pod from its manifest; `created` overrides the creationTimestamp."""
    metadata = require.mapping(place / "metadata", pod.get("metadata"))
    name = require.string(place / "metadata" / "name", metadata.get("name"))
    if problem := name_problem(name):
        (place / "metadata" / "name").reject(problem)
    owners = [ref for ref in metadata.get("ownerReferences") or () if isinstance(ref, Mapping)]  # type: ignore[attr-defined]
    annotations = metadata.get("annotations")
    is_mirror = isinstance(annotations, Mapping) and _MIRROR_ANNOTATION in annotations
    at = _time(metadata.get("creationTimestamp")) if created is None else created
    if at is None:
        problem, remedy = "is missing or not a time", "write the list with: kubectl get pods -o json"
        (place / "metadata" / "creationTimestamp").reject(problem, remedy)
    return PodHistory(
        place=place,
        name=name,
        namespace=str(metadata.get("namespace") or "default"),
        spec=require.mapping(place / "spec", pod.get("spec")),
        created=at,
        is_node_pod=is_mirror or any(owner.get("kind") in _NODE_OWNER_KINDS for owner in owners),
    )


def workload_from_histories(
    histories: list[PodHistory], path: Path, name: str, notes: Counter[FidelityNote]
) -> Workload:
    """Convert the pods that started and ended to jobs, the first of which is submitted at 0. Raises InputError."""
    counts = Counter(notes)
    complete = [history for history in histories if _is_complete(history, counts)]
    if not complete:
        problem = f"contains no pod that started and ended ({sum(counts.values())} were left out)"
        raise InputError(path, problem=problem, remedy="record it after pods have ended, and before they are deleted")
    complete.sort(key=lambda history: history.created)
    jobs = _PodJobs(name, complete)
    return Workload(
        name=name,
        source=str(path),
        jobs=[jobs.job(history) for history in complete],
        notes=tuple((note, count) for note, count in counts.items() if count),
    )


def _is_complete(history: PodHistory, counts: Counter[FidelityNote]) -> bool:
    if history.is_node_pod:
        counts[NODE_POD] += 1
    elif history.started is None:
        counts[NOT_STARTED] += 1
    elif history.finished is None:
        counts[NOT_FINISHED] += 1
    else:
        counts[DELETED_WHILE_RUNNING] += history.is_deleted
        counts[PLACEMENT_LOST] += any(history.spec.get(field) for field in _PLACEMENT_FIELDS)
        return True
    return False


class _PodJobs:
    """Converts pods to jobs with unique names: the same name can occur in several namespaces, and repeatedly."""

    def __init__(self, workload: str, histories: list[PodHistory]) -> None:
        self._workload = workload
        self._first = histories[0].created
        self._namespaces: dict[str, set[str]] = {}
        for history in histories:
            self._namespaces.setdefault(history.name, set()).add(history.namespace)
        self._name_counts: Counter[str] = Counter()
        self._delays = DelayProfiles()
        self._shared: dict[Requests, Requests] = {}

    def job(self, history: PodHistory) -> Job:
        assert history.started is not None
        assert history.finished is not None
        name = history.name if len(self._namespaces[history.name]) == 1 else f"{history.namespace}.{history.name}"
        self._name_counts[name] += 1
        length = Duration(max(0, history.finished - history.started))
        profile = self._delays.profile_for(length, 0 if history.is_deleted else history.exit_code)
        requests = read_pod_requests(history.place / "spec", history.spec)
        scheduler = str(history.spec.get("schedulerName") or "")
        priority = history.spec.get("priority")
        return Job(
            workload=self._workload,
            name=name if self._name_counts[name] == 1 else f"{name}-{self._name_counts[name]}",
            submit=Instant(history.created - self._first),
            size=1,
            profile=profile,
            requests=self._shared.setdefault(requests, requests),
            user=history.namespace,
            priority=priority if isinstance(priority, int) else 0,
            scheduler="" if scheduler == "default-scheduler" else scheduler,
            image=_image(history.spec),
        )


def _image(spec: Mapping[str, object]) -> str:
    containers = spec.get("containers")
    first = containers[0] if isinstance(containers, list) and containers else {}
    return str(first.get("image") or "") if isinstance(first, Mapping) else ""


def _started_at(state: Mapping[str, Any]) -> Instant | None:
    """Return the start time in a container's state."""
    for kind in ("running", "terminated"):
        if isinstance(state.get(kind), Mapping):
            return _time(state[kind].get("startedAt"))
    return None


def _time(stamp: object) -> Instant | None:
    try:
        return instant_of(stamp) if isinstance(stamp, str) and stamp else None
    except ValueError:
        return None
