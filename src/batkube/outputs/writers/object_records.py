"""What became of pods and Jobs that controllers, programs or people made: rows for pods.csv and jobs.csv.

The jobs of a workload have somebody who looks after them and tells (`execution.workload_jobs`). Of everything else
there is only what the store shows: a pod was bound, runs, has ended or is gone; a batch/v1 Job has completed or failed.
This module listens, and tells of each when it is over.
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
"""Tells which workload an object, of a kind in the store, came with; None when it came with none."""


class _PodState:
    """A pod that is not over."""

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
        #: Since when its processes run; None while they do not, as on a node that has failed.
        self.running_since: Instant | None = None
        #: Whether it ends by itself, as far as its spec tells.
        self.will_end = spec.get("restartPolicy", "Always") != "Always" or "activeDeadlineSeconds" in spec


class _JobState:
    """A batch/v1 Job, and what its pods have come to."""

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
        #: What a pod's time counts.
        self.pod_milli = work_milli(demand_of({"metadata": {}, "spec": job["spec"]["template"]["spec"]}))
        #: How many pods were made, how many of them placed, how many disrupted, and the work of those that came to
        #: nothing because they were disrupted or their node failed.
        self.tries = 0
        self.attempts = 0
        self.evictions = 0
        self.work_lost = 0
        self.scheduled: Instant | None = None
        self.started: Instant | None = None
        self.machine_ids: dict[int, None] = {}
        self.is_over = False


class ObjectRecords:
    """Listens to pods without a course, and to Jobs."""

    def __init__(self, world: World, workload_of: WorkloadOf, on_pod: PodListener) -> None:
        self._store = store = world.store
        self._executions = world.executions
        self._machine_ids = world.machines.ids
        self._workload_of = workload_of
        self._on_pod = on_pod
        self._pods: dict[Key, _PodState] = {}
        #: Jobs that are there, over or not, by uid.
        self._jobs: dict[str, _JobState] = {}
        #: How many Jobs and pods are there that will end and have not.
        self._open_count = 0
        self.outcomes: list[Outcome] = []
        #: How many Jobs were made so far.
        self.created_job_count = 0
        store.subscribe(JOB, self._on_jobs_changed)
        store.subscribe(POD, self._on_pods_changed)
        store.subscribe(NODE, self._on_nodes_changed)
        world.heartbeats.subscribe(self._on_node_lost, self._on_node_recovered)

    @property
    def job_count(self) -> int:
        """How many Jobs there were, those that have not ended included."""
        return len(self.outcomes) + len(self.open_jobs())

    @property
    def have_all_ended(self) -> bool:
        """Whether nothing is there that will end by itself and has not."""
        return self._open_count == 0

    def open_jobs(self) -> list[Key]:
        """Return the Jobs that have not ended; those that stand for a workload's jobs are not among them."""
        lives = {key: self._jobs.get(job["metadata"]["uid"]) for key, job in self._store.all(JOB).items()}
        return [key for key, life in lives.items() if life is not None and not life.is_over]

    def open_pods(self) -> list[Key]:
        """Return the pods that should end and have not."""
        return [key for key, life in self._pods.items() if life.will_end]

    # Pods

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if batch.type is ADDED:
                if self._executions.find(key) is None:
                    self._track_pod(key, pod, now)
            elif (life := self._pods.get(key)) is not None:
                self._update_pod(life, pod, now)
                if batch.type is DELETED or is_finished(pod):
                    self._report_pod(key, life, pod, now)

    def _track_pod(self, key: Key, pod: KubeObject, now: Instant) -> None:
        reference = controller_of(pod)
        job = None if reference is None else self._jobs.get(reference["uid"])
        workload = self._workload_name(POD, key, pod) if job is None else job.workload
        life = self._pods[key] = _PodState(pod, workload, job, now)
        self._open_count += life.will_end
        if job is not None:
            job.tries += 1
        self._update_pod(life, pod, now)

    def _update_pod(self, life: _PodState, pod: KubeObject, now: Instant) -> None:
        """Take note of a binding, and of the start."""
        job = life.job
        if life.scheduled is None and node_of_pod(pod):
            life.scheduled, life.node = now, node_of_pod(pod)
            if job is not None:
                job.scheduled = now
                job.attempts += 1
        if life.started is None and phase_of(pod) == "Running":
            life.started = life.running_since = now
            if job is not None:
                job.started = now if job.started is None else job.started
                if (number := self._machine_ids.get(node_of_pod(pod))) is not None:
                    job.machine_ids[number] = None

    def _report_pod(self, key: Key, life: _PodState, pod: KubeObject, now: Instant | None) -> None:
        """Tell the story of a pod that is over, or that the run has left (`now` is None)."""
        del self._pods[key]
        self._open_count -= life.will_end
        if life.job is not None and now is not None and has_condition(pod, "DisruptionTarget"):
            life.job.evictions += 1
            _record_lost_work(life, now)
        reference, node = controller_of(pod), node_of_pod(pod)
        self._on_pod(
            PodRecord(
                key=key,
                owner=life.owner,
                job=""
                if life.job is None or reference is None
                else _display_name(namespace_of(key), reference["name"]),
                workload=life.workload,
                node=node,
                machine_id=self._machine_ids.get(node),
                created=life.created,
                scheduled=life.scheduled,
                started=life.started,
                finished=now,
                phase=phase_of(pod) if now is None or is_finished(pod) else DELETED_PHASE,
                reason=str(pod.get("status", {}).get("reason", "")),
            )
        )

    def report_remaining_pods(self) -> None:
        """Tell of the pods that the end of the run has met alive."""
        for key, life in list(self._pods.items()):
            self._report_pod(key, life, self._store.objects(POD, [key])[0], None)

    # Nodes

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for name in batch.keys:
                self._on_node_lost(name, now)

    def _on_node_lost(self, node: str, now: Instant) -> None:
        """A node failed or is gone: what the processes of its pods had done until then is lost."""
        for life in self._pods.values():
            if life.node == node:
                _record_lost_work(life, now)

    def _on_node_recovered(self, node: str, now: Instant) -> None:
        """A node is back, and its kubelet starts its pods again (or says that they have failed)."""
        for life in self._pods.values():
            if life.node == node and life.started is not None:
                life.running_since = now

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
            life = self._jobs[uid]
            state = _final_state_of(job)
            if state is None and batch.type is DELETED:
                state = FinalState.KILLED
            if state is not None and not life.is_over:
                life.is_over = True
                self._open_count -= 1
                self.outcomes.append(_outcome(key, job, life, state, now))
            if batch.type is DELETED:
                del self._jobs[uid]

    def _workload_name(self, storage: str, key: Key, obj: KubeObject) -> str:
        """Return the workload that an object, or what controls it, came with."""
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


def _record_lost_work(life: _PodState, now: Instant) -> None:
    """The processes of a pod have come to nothing; a Job's work is lost."""
    if life.job is not None and life.running_since is not None:
        life.job.work_lost += life.job.pod_milli * (now - life.running_since)
    life.running_since = None


def _display_name(namespace: str, name: str) -> str:
    """Return how the tables call an object: by its name alone in the namespace where all else is."""
    return name if namespace == NAMESPACE else f"{namespace}/{name}"


def _final_state_of(job: KubeObject) -> FinalState | None:
    """Return how a Job ended, in Batsim's words; None when it has not."""
    if has_condition(job, "Complete"):
        return FinalState.SUCCESS
    if not has_condition(job, "Failed"):
        return None
    condition = condition_of(job, "Failed") or {}
    return FinalState.WALLTIME if condition.get("reason") == "DeadlineExceeded" else FinalState.FAILED


def _outcome(key: Key, job: KubeObject, life: _JobState, state: FinalState, now: Instant) -> Outcome:
    spec = job["spec"]
    template = spec["template"]
    pod = {"metadata": {}, "spec": template["spec"]}
    deadline_s = spec.get("activeDeadlineSeconds")
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    described = Job(
        workload=life.workload,
        name=_display_name(namespace_of(key), job["metadata"]["name"]),
        submit=life.created,
        size=min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1))),
        profile=Profile(name=OBJECT_PROFILE),
        walltime=None if deadline_s is None else seconds(deadline_s),
        requests=tuple((name, amount) for name, amount in sorted(demand_of(pod).items()) if name != PODS),
        user=annotations.get(USER, ""),
        priority=template["spec"].get("priority", 0),
        scheduler="" if (name := template["spec"].get("schedulerName", "")) == "default-scheduler" else name,
    )
    return Outcome(
        job=described,
        state=state,
        scheduled=life.scheduled,
        started=life.started,
        finished=now if life.started is not None else None,
        machines=mask_of(list(life.machine_ids)),
        past=PastAttempts(life.attempts, life.evictions, life.work_lost, life.tries),
    )
