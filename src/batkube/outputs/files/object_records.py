"""What became of pods and Jobs that controllers, programs or people made: rows for pods.csv and jobs.csv.

The jobs of a workload have somebody who looks after them and tells (`execution.workload_jobs`). Of everything else
there is only what the store shows: a pod was bound, runs, has ended or is gone; a batch/v1 Job has completed or failed.
This module listens, and tells of each when it is over.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.cluster.courses import work_milli
from batkube.cluster.mapping import NAMESPACE, NODE, POD
from batkube.cluster.outcomes import (
    DELETED_PHASE,
    OBJECT_PROFILE,
    FinalState,
    Outcome,
    Past,
    PodListener,
    PodRecord,
)
from batkube.cluster.pods import is_finished, node_of_pod, phase_of
from batkube.cluster.references import annotations_of, condition_of, controller_of, has_condition, namespace_of
from batkube.cluster.resources import demand_of
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.submission_forms import ANNOTATION_JOB
from batkube.cluster.world import World
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.intervals import mask_of
from batkube.kernel.quantities import PODS
from batkube.workloads.annotations import USER
from batkube.workloads.model import Job, Profile

JOB = "jobs.batch"

WorkloadOf = Callable[[str, Key], str | None]
"""Tells which workload an object, of a kind in the store, came with; None when it came with none."""


class _PodLife:
    """A pod that is not over."""

    __slots__ = ("created", "job", "node", "owner", "running_since", "scheduled", "started", "will_end", "workload")

    def __init__(self, pod: KubeObject, workload: str, job: _JobLife | None, now: Instant) -> None:
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


class _JobLife:
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
        self._courses = world.courses
        self._machine_ids = world.machines.ids
        self._workload_of = workload_of
        self._on_pod = on_pod
        self._pods: dict[Key, _PodLife] = {}
        #: Jobs that are there, over or not, by uid.
        self._jobs: dict[str, _JobLife] = {}
        #: How many Jobs and pods are there that will end and have not.
        self._open = 0
        self.outcomes: list[Outcome] = []
        #: How many Jobs were made so far.
        self.made_job_count = 0
        store.listen(JOB, self._hear_jobs)
        store.listen(POD, self._hear_pods)
        store.listen(NODE, self._hear_nodes)
        world.heartbeats.listen(self._lose, self._find)

    @property
    def job_count(self) -> int:
        """How many Jobs there were, those that have not ended included."""
        return len(self.outcomes) + len(self.open_jobs())

    @property
    def are_all_over(self) -> bool:
        """Whether nothing is there that will end by itself and has not."""
        return self._open == 0

    def open_jobs(self) -> list[Key]:
        """Return the Jobs that have not ended; those that stand for a workload's jobs are not among them."""
        lives = {key: self._jobs.get(job["metadata"]["uid"]) for key, job in self._store.all(JOB).items()}
        return [key for key, life in lives.items() if life is not None and not life.is_over]

    def open_pods(self) -> list[Key]:
        """Return the pods that should end and have not."""
        return [key for key, life in self._pods.items() if life.will_end]

    # Pods

    def _hear_pods(self, batch: Batch, now: Instant) -> None:
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            if batch.type is ADDED:
                if self._courses.place(key) is None:
                    self._take_up(key, pod, now)
            elif (life := self._pods.get(key)) is not None:
                self._follow(life, pod, now)
                if batch.type is DELETED or is_finished(pod):
                    self._tell(key, life, pod, now)

    def _take_up(self, key: Key, pod: KubeObject, now: Instant) -> None:
        reference = controller_of(pod)
        job = None if reference is None else self._jobs.get(reference["uid"])
        workload = self._origin(POD, key, pod) if job is None else job.workload
        life = self._pods[key] = _PodLife(pod, workload, job, now)
        self._open += life.will_end
        if job is not None:
            job.tries += 1
        self._follow(life, pod, now)

    def _follow(self, life: _PodLife, pod: KubeObject, now: Instant) -> None:
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

    def _tell(self, key: Key, life: _PodLife, pod: KubeObject, now: Instant | None) -> None:
        """Tell the story of a pod that is over, or that the run has left (`now` is None)."""
        del self._pods[key]
        self._open -= life.will_end
        if life.job is not None and now is not None and has_condition(pod, "DisruptionTarget"):
            life.job.evictions += 1
            _stop(life, now)
        reference, node = controller_of(pod), node_of_pod(pod)
        self._on_pod(
            PodRecord(
                key=key,
                owner=life.owner,
                job="" if life.job is None or reference is None else _id(namespace_of(key), reference["name"]),
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

    def tell_the_rest(self) -> None:
        """Tell of the pods that the end of the run has met alive."""
        for key, life in list(self._pods.items()):
            self._tell(key, life, self._store.objects(POD, [key])[0], None)

    # Nodes

    def _hear_nodes(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for name in batch.keys:
                self._lose(name, now)

    def _lose(self, node: str, now: Instant) -> None:
        """A node failed or is gone: what the processes of its pods had done until then is lost."""
        for life in self._pods.values():
            if life.node == node:
                _stop(life, now)

    def _find(self, node: str, now: Instant) -> None:
        """A node is back, and its kubelet starts its pods again (or says that they have failed)."""
        for life in self._pods.values():
            if life.node == node and life.started is not None:
                life.running_since = now

    # Jobs

    def _hear_jobs(self, batch: Batch, now: Instant) -> None:
        for key, job in zip(batch.keys, batch.objects, strict=True):
            uid = job["metadata"]["uid"]
            if ANNOTATION_JOB in annotations_of(job):
                continue
            if batch.type is ADDED:
                self._jobs[uid] = _JobLife(job, self._origin(JOB, key, job), now)
                self._open += 1
                self.made_job_count += 1
            life = self._jobs[uid]
            state = _state_of(job)
            if state is None and batch.type is DELETED:
                state = FinalState.KILLED
            if state is not None and not life.is_over:
                life.is_over = True
                self._open -= 1
                self.outcomes.append(_outcome(key, job, life, state, now))
            if batch.type is DELETED:
                del self._jobs[uid]

    def _origin(self, storage: str, key: Key, obj: KubeObject) -> str:
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
        return "" if owner is None else self._origin(owner_storage, owner_key, owner)


def _stop(life: _PodLife, now: Instant) -> None:
    """The processes of a pod have come to nothing; a Job's work is lost."""
    if life.job is not None and life.running_since is not None:
        life.job.work_lost += life.job.pod_milli * (now - life.running_since)
    life.running_since = None


def _id(namespace: str, name: str) -> str:
    """Return how the tables call an object: by its name alone in the namespace where all else is."""
    return name if namespace == NAMESPACE else f"{namespace}/{name}"


def _state_of(job: KubeObject) -> FinalState | None:
    """Return how a Job ended, in Batsim's words; None when it has not."""
    if has_condition(job, "Complete"):
        return FinalState.SUCCESS
    if not has_condition(job, "Failed"):
        return None
    condition = condition_of(job, "Failed") or {}
    return FinalState.WALLTIME if condition.get("reason") == "DeadlineExceeded" else FinalState.FAILED


def _outcome(key: Key, job: KubeObject, life: _JobLife, state: FinalState, now: Instant) -> Outcome:
    spec = job["spec"]
    template = spec["template"]
    pod = {"metadata": {}, "spec": template["spec"]}
    deadline_s = spec.get("activeDeadlineSeconds")
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    described = Job(
        workload=life.workload,
        name=_id(namespace_of(key), job["metadata"]["name"]),
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
        past=Past(life.attempts, life.evictions, life.work_lost, life.tries),
    )
