"""Pods that ran on a cluster, made into jobs: what its own records tell of them, whoever kept these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, Instant, instant_of
from batkube.workloads import fields as take
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.fields import Place
from batkube.workloads.formats.kubernetes.pod_requests import read_pod_requests
from batkube.workloads.model import Job, Requests, Workload
from batkube.workloads.names import name_problem

#: Pods that a node brings along, and that no scheduler places: of a DaemonSet, or read by the kubelet itself.
_NODE_OWNER_KINDS, _MIRROR_ANNOTATION = ("DaemonSet", "Node"), "kubernetes.io/config.mirror"
_PLACEMENT_FIELDS = ("nodeSelector", "affinity", "topologySpreadConstraints")

NOT_STARTED = FidelityNote("workload", "a pod had not begun: nobody knows how long it runs, and it is left out")
NOT_FINISHED = FidelityNote("workload", "a pod had not ended: nobody knows how long it runs, and it is left out")
DELETED_WHILE_RUNNING = FidelityNote("workload", "a pod was deleted while it ran: here it ends then, and succeeds")
NODE_POD = FidelityNote("workload", "a pod belongs to its node (DaemonSet, static pod) and is left out")
PLACEMENT_LOST = FidelityNote(
    "workload", "a pod says where it may go (selectors, affinity, …): jobs do not, and it is lost"
)


@dataclass(slots=True)
class PodHistory:
    """What is known of a pod."""

    place: Place
    name: str
    namespace: str
    spec: Mapping[str, object]
    created: Instant
    is_node_pod: bool
    started: Instant | None = None
    finished: Instant | None = None
    #: Whether it ended because somebody deleted it.
    is_deleted: bool = False
    exit_code: int = 0

    def update_from_status(self, status: Mapping[str, Any], at: Instant | None = None) -> None:
        """Take what a status says; where it tells no time of its own, things happened at `at`."""
        states = [one.get("state") or {} for one in status.get("containerStatuses") or () if isinstance(one, Mapping)]
        phase = status.get("phase")
        begins = [time for state in states if (time := _started_at(state)) is not None]
        if self.started is None and (len(begins) == len(states) > 0 or (phase == "Running" and at is not None)):
            # A pod works once all its containers run.
            self.started = max(begins, default=at)
        if self.finished is None and phase in ("Succeeded", "Failed"):
            ends = [state["terminated"] for state in states if isinstance(state.get("terminated"), Mapping)]
            times = [time for end in ends if (time := _time(end.get("finishedAt"))) is not None]
            self.finished = max(times, default=at)
            self.exit_code = max((int(end.get("exitCode") or 0) for end in ends), default=int(phase == "Failed"))


def history_of(place: Place, pod: Mapping[str, Any], created: Instant | None = None) -> PodHistory:
    """Return what a pod's manifest says of it; it was created when it says, unless that is known better."""
    metadata = take.mapping(place / "metadata", pod.get("metadata"))
    name = take.string(place / "metadata" / "name", metadata.get("name"))
    if problem := name_problem(name):
        (place / "metadata" / "name").reject(problem)
    owners = [one for one in metadata.get("ownerReferences") or () if isinstance(one, Mapping)]  # type: ignore[attr-defined]
    annotations = metadata.get("annotations")
    is_mirror = isinstance(annotations, Mapping) and _MIRROR_ANNOTATION in annotations
    at = _time(metadata.get("creationTimestamp")) if created is None else created
    if at is None:
        problem, remedy = "does not say when the pod was created", "write it as the API does: kubectl get -o json"
        (place / "metadata" / "creationTimestamp").reject(problem, remedy)
    return PodHistory(
        place=place,
        name=name,
        namespace=str(metadata.get("namespace") or "default"),
        spec=take.mapping(place / "spec", pod.get("spec")),
        created=at,
        is_node_pod=is_mirror or any(owner.get("kind") in _NODE_OWNER_KINDS for owner in owners),
    )


def workload_from_histories(courses: list[PodHistory], path: Path, name: str, notes: Counter[FidelityNote]) -> Workload:
    """Return the pods that began and ended as jobs, the first of which is submitted at 0. Raises InputError."""
    counts = Counter(notes)
    kept = [course for course in courses if _is_complete(course, counts)]
    if not kept:
        problem = f"holds no pod that began and ended ({sum(counts.values())} were left out)"
        raise InputError(
            path, problem=problem, remedy="take the list when pods have ended, and before they are deleted"
        )
    kept.sort(key=lambda course: course.created)
    jobs = _PodJobs(name, kept)
    return Workload(
        name=name,
        source=str(path),
        jobs=[jobs.job(course) for course in kept],
        notes=tuple((note, count) for note, count in counts.items() if count),
    )


def _is_complete(course: PodHistory, counts: Counter[FidelityNote]) -> bool:
    if course.is_node_pod:
        counts[NODE_POD] += 1
    elif course.started is None:
        counts[NOT_STARTED] += 1
    elif course.finished is None:
        counts[NOT_FINISHED] += 1
    else:
        counts[DELETED_WHILE_RUNNING] += course.is_deleted
        counts[PLACEMENT_LOST] += any(course.spec.get(field) for field in _PLACEMENT_FIELDS)
        return True
    return False


class _PodJobs:
    """Makes jobs of pods; each has a name of its own, whatever the namespace, and however often it came again."""

    def __init__(self, workload: str, courses: list[PodHistory]) -> None:
        self._workload = workload
        self._first = courses[0].created
        self._namespaces: dict[str, set[str]] = {}
        for course in courses:
            self._namespaces.setdefault(course.name, set()).add(course.namespace)
        self._name_counts: Counter[str] = Counter()
        self._delays = DelayProfiles()
        self._shared: dict[Requests, Requests] = {}

    def job(self, course: PodHistory) -> Job:
        assert course.started is not None
        assert course.finished is not None
        plain = course.name if len(self._namespaces[course.name]) == 1 else f"{course.namespace}.{course.name}"
        self._name_counts[plain] += 1
        length = Duration(max(0, course.finished - course.started))
        profile = self._delays.profile_for(length, 0 if course.is_deleted else course.exit_code)
        requests = read_pod_requests(course.place / "spec", course.spec)
        scheduler = str(course.spec.get("schedulerName") or "")
        priority = course.spec.get("priority")
        return Job(
            workload=self._workload,
            name=plain if self._name_counts[plain] == 1 else f"{plain}-{self._name_counts[plain]}",
            submit=Instant(course.created - self._first),
            size=1,
            profile=profile,
            requests=self._shared.setdefault(requests, requests),
            user=course.namespace,
            priority=priority if isinstance(priority, int) else 0,
            scheduler="" if scheduler == "default-scheduler" else scheduler,
            image=_image(course.spec),
        )


def _image(spec: Mapping[str, object]) -> str:
    containers = spec.get("containers")
    first = containers[0] if isinstance(containers, list) and containers else {}
    return str(first.get("image") or "") if isinstance(first, Mapping) else ""


def _started_at(state: Mapping[str, Any]) -> Instant | None:
    """Return when a container began, as its state tells."""
    for kind in ("running", "terminated"):
        if isinstance(state.get(kind), Mapping):
            return _time(state[kind].get("startedAt"))
    return None


def _time(stamp: object) -> Instant | None:
    try:
        return instant_of(stamp) if isinstance(stamp, str) and stamp else None
    except ValueError:
        return None
