"""Rows in pods.csv and jobs.csv for pods and Jobs that are not workload jobs, but created by controllers or clients.

The jobs of a workload are reported by their own controller (`execution.workload_jobs`). Everything else is observed in
the store: a pod is bound, runs, ends or is deleted; a batch/v1 Job completes or fails. This module subscribes to pods,
Jobs and nodes, and reports each object when it has ended.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.cluster.jobs.executions import work_milli
from batkube.cluster.jobs.outcomes import (
    DELETED_PHASE,
    OBJECT_PROFILE,
    FinalState,
    Outcome,
    PastAttempts,
    PodListener,
    PodRecord,
)
from batkube.cluster.jobs.submission_forms import ANNOTATION_JOB
from batkube.cluster.mapping import NAMESPACE, NODE, POD
from batkube.cluster.object_meta import annotations_of, condition_of, controller_of, has_condition, namespace_of
from batkube.cluster.pods.accessors import is_finished, node_of_pod, phase_of
from batkube.cluster.pods.resources import demand_of
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.intervals import mask_of
from batkube.kernel.quantities import PODS
from batkube.workloads.formats.kubernetes.annotations import USER
from batkube.workloads.model import Job, Profile

JOB = "jobs.batch"

WorkloadOf = Callable[[str, Key], str | None]
"""Returns the workload that contained an object, given its storage and key; None if no workload did."""


class _PodState:
    """A pod that has not ended."""

    __slots__ = ("created", "job", "node", "owner", "running_since", "scheduled", "started", "will_end", "workload")

    def __init__(self, pod: KubeObject, workload: str, job: _JobState | None, now: Instant) -> None:
        reference = controller_of(pod)
        spec = pod["spec"]
        self.owner = "" if reference is None else f"{reference['kind']}/{reference['name']}"
        self.job = job
        self.workload = workload
        self.created = now
        self.node = ""
        self.scheduled: Instant | None = None
        self.started: Instant | None = None
        #: Since when its processes run; None while they do not, for example on a failed node.
        self.running_since: Instant | None = None
        #: Whether it ends by itself, according to its spec.
        self.will_end = spec.get("restartPolicy", "Always") != "Always" or "activeDeadlineSeconds" in spec


class _JobState:
    """A batch/v1 Job, and totals over its pods."""

    __slots__ = (
        "attempts",
        "created",
        "evictions",
        "is_over",
        "machine_ids",
        "pod_milli",
        "scheduled",
        "started",
        "tries",
        "work_lost",
        "workload",
    )

    def __init__(self, job: KubeObject, workload: str, now: Instant) -> None:
        self.workload = workload
        self.created = now
        #: Millicores by which a pod's time counts as work.
        self.pod_milli = work_milli(demand_of({"metadata": {}, "spec": job["spec"]["template"]["spec"]}))
        #: Numbers of pods created, placed and disrupted, and the lost work of pods that were disrupted or whose node
        #: failed.
        self.tries = 0
        self.attempts = 0
        self.evictions = 0
        self.work_lost = 0
        self.scheduled: Instant | None = None
        self.started: Instant | None = None
        self.machine_ids: dict[int, None] = {}
        self.is_over = False


class ObjectRecords:
    """Observes pods that do not belong to a workload job, and batch/v1 Jobs."""

    def __init__(self, world: World, workload_of: WorkloadOf, on_pod: PodListener) -> None:
        self._store = store = world.store
        self._executions = world.executions
        self._machine_ids = world.machines.ids
        self._workload_of = workload_of
        self._on_pod = on_pod
        self._pods: dict[Key, _PodState] = {}
        #: Existing Jobs, finished or not, by uid.
        self._jobs: dict[str, _JobState] = {}
        #: Number of Jobs and pods that will end and have not.
        self._open_count = 0
        self.outcomes: list[Outcome] = []
        #: Number of Jobs created so far.
        self.created_job_count = 0
        store.subscribe(JOB, self._on_jobs_changed)
        store.subscribe(POD, self._on_pods_changed)
        store.subscribe(NODE, self._on_nodes_changed)
        world.heartbeats.subscribe(self._on_node_lost, self._on_node_recovered)

    @property
    def job_count(self) -> int:
        """Number of Jobs, including those that have not ended."""
        return len(self.outcomes) + len(self.open_jobs())

    @property
    def have_all_ended(self) -> bool:
        """Whether all Jobs and pods that end by themselves have ended."""
        return self._open_count == 0

    def open_jobs(self) -> list[Key]:
        """Return the Jobs that have not ended, without those that represent workload jobs."""
        states = {key: self._jobs.get(job["metadata"]["uid"]) for key, job in self._store.all(JOB).items()}
        return [key for key, state in states.items() if state is not None and not state.is_over]

    def open_pods(self) -> list[Key]:
        """Return the pods that should end and have not."""
        return [key for key, state in self._pods.items() if state.will_end]

    # Pods

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if batch.type is ADDED:
                if self._executions.find(key) is None:
                    self._track_pod(key, pod, now)
            elif (pod_state := self._pods.get(key)) is not None:
                self._update_pod(pod_state, pod, now)
                if batch.type is DELETED or is_finished(pod):
                    self._report_pod(key, pod_state, pod, now)

    def _track_pod(self, key: Key, pod: KubeObject, now: Instant) -> None:
        reference = controller_of(pod)
        job = None if reference is None else self._jobs.get(reference["uid"])
        workload = self._workload_name(POD, key, pod) if job is None else job.workload
        pod_state = self._pods[key] = _PodState(pod, workload, job, now)
        self._open_count += pod_state.will_end
        if job is not None:
            job.tries += 1
        self._update_pod(pod_state, pod, now)

    def _update_pod(self, pod_state: _PodState, pod: KubeObject, now: Instant) -> None:
        """Record the binding and the start of a pod."""
        job = pod_state.job
        if pod_state.scheduled is None and node_of_pod(pod):
            pod_state.scheduled, pod_state.node = now, node_of_pod(pod)
            if job is not None:
                job.scheduled = now
                job.attempts += 1
        if pod_state.started is None and phase_of(pod) == "Running":
            pod_state.started = pod_state.running_since = now
            if job is not None:
                job.started = now if job.started is None else job.started
                if (number := self._machine_ids.get(node_of_pod(pod))) is not None:
                    job.machine_ids[number] = None

    def _report_pod(self, key: Key, pod_state: _PodState, pod: KubeObject, now: Instant | None) -> None:
        """Report a pod that has ended, or that still exists at the end of the run (`now` is None)."""
        del self._pods[key]
        self._open_count -= pod_state.will_end
        if pod_state.job is not None and now is not None and has_condition(pod, "DisruptionTarget"):
            pod_state.job.evictions += 1
            _record_lost_work(pod_state, now)
        reference, node = controller_of(pod), node_of_pod(pod)
        self._on_pod(
            PodRecord(
                key=key,
                owner=pod_state.owner,
                job=""
                if pod_state.job is None or reference is None
                else _display_name(namespace_of(key), reference["name"]),
                workload=pod_state.workload,
                node=node,
                machine_id=self._machine_ids.get(node),
                created=pod_state.created,
                scheduled=pod_state.scheduled,
                started=pod_state.started,
                finished=now,
                phase=phase_of(pod) if now is None or is_finished(pod) else DELETED_PHASE,
                reason=str(pod.get("status", {}).get("reason", "")),
                requests=tuple(demand_of(pod).items()),
            )
        )

    def report_remaining_pods(self) -> None:
        """Report the pods that still exist at the end of the run."""
        for key, pod_state in list(self._pods.items()):
            self._report_pod(key, pod_state, self._store.objects(POD, [key])[0], None)

    # Nodes

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for name in batch.keys:
                self._on_node_lost(name, now)

    def _on_node_lost(self, node: str, now: Instant) -> None:
        """Record that the work of a node's pods is lost, since it failed or was deleted."""
        for pod_state in self._pods.values():
            if pod_state.node == node:
                _record_lost_work(pod_state, now)

    def _on_node_recovered(self, node: str, now: Instant) -> None:
        """Record that a recovered node's kubelet restarts its pods (or reports them as failed)."""
        for pod_state in self._pods.values():
            if pod_state.node == node and pod_state.started is not None:
                pod_state.running_since = now

    # Jobs

    def _on_jobs_changed(self, batch: Batch, now: Instant) -> None:
        for key, job in zip(batch.keys, batch.objects, strict=True):
            uid = job["metadata"]["uid"]
            if ANNOTATION_JOB in annotations_of(job):
                continue
            if batch.type is ADDED:
                self._jobs[uid] = _JobState(job, self._workload_name(JOB, key, job), now)
                self._open_count += 1
                self.created_job_count += 1
            job_state = self._jobs[uid]
            state = _final_state_of(job)
            if state is None and batch.type is DELETED:
                state = FinalState.KILLED
            if state is not None and not job_state.is_over:
                job_state.is_over = True
                self._open_count -= 1
                self.outcomes.append(_outcome(key, job, job_state, state, now))
            if batch.type is DELETED:
                del self._jobs[uid]

    def _workload_name(self, storage: str, key: Key, obj: KubeObject) -> str:
        """Return the workload that contained an object or one of its owners; "" if no workload did."""
        workload = self._workload_of(storage, key)
        reference = controller_of(obj)
        if workload is not None or reference is None:
            return workload or ""
        group = reference["apiVersion"].rpartition("/")[0]
        owner_storage = f"{reference['kind'].lower()}s{f'.{group}' if group else ''}"
        namespace = namespace_of(key)
        owner_key = Key(f"{namespace}/{reference['name']}" if namespace else reference["name"])
        owner = self._store.get(owner_storage, owner_key)
        return "" if owner is None else self._workload_name(owner_storage, owner_key, owner)


def _record_lost_work(pod_state: _PodState, now: Instant) -> None:
    """Add the work of a pod's processes to the lost work of its Job."""
    if pod_state.job is not None and pod_state.running_since is not None:
        pod_state.job.work_lost += pod_state.job.pod_milli * (now - pod_state.running_since)
    pod_state.running_since = None


def _display_name(namespace: str, name: str) -> str:
    """Return the name of an object in tables: without its namespace if that is the default one of runs."""
    return name if namespace == NAMESPACE else f"{namespace}/{name}"


def _final_state_of(job: KubeObject) -> FinalState | None:
    """Return the final state of a Job in Batsim's terms; None if it has not ended."""
    if has_condition(job, "Complete"):
        return FinalState.SUCCESS
    if not has_condition(job, "Failed"):
        return None
    condition = condition_of(job, "Failed") or {}
    return FinalState.WALLTIME if condition.get("reason") == "DeadlineExceeded" else FinalState.FAILED


def _outcome(key: Key, job: KubeObject, job_state: _JobState, state: FinalState, now: Instant) -> Outcome:
    spec = job["spec"]
    template = spec["template"]
    pod = {"metadata": {}, "spec": template["spec"]}
    deadline_s = spec.get("activeDeadlineSeconds")
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    workload_job = Job(
        workload=job_state.workload,
        name=_display_name(namespace_of(key), job["metadata"]["name"]),
        submit=job_state.created,
        size=min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1))),
        profile=Profile(name=OBJECT_PROFILE),
        walltime=None if deadline_s is None else seconds(deadline_s),
        requests=tuple((name, amount) for name, amount in sorted(demand_of(pod).items()) if name != PODS),
        user=annotations.get(USER, ""),
        priority=template["spec"].get("priority", 0),
        scheduler="" if (name := template["spec"].get("schedulerName", "")) == "default-scheduler" else name,
    )
    return Outcome(
        job=workload_job,
        state=state,
        scheduled=job_state.scheduled,
        started=job_state.started,
        finished=now if job_state.started is not None else None,
        machines=mask_of(list(job_state.machine_ids)),
        past=PastAttempts(job_state.attempts, job_state.evictions, job_state.work_lost, job_state.tries),
    )
