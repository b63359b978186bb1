"""Creates the objects of a job in its submission form (`cluster.jobs.submission_forms`), and deletes them at its end.

Bare pods are created here, together with the job execution that they share. If a controller creates the pods of a job,
each of them is added to the execution when it appears, by the job's identity in its annotations. A job that was aborted
gets a new execution with the next pods that its controller creates.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence

from batkube.cluster.client import ApiError, BulkClient, Client, ignore_not_found
from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.jobs.outcomes import NO_ATTEMPTS, PastAttempts
from batkube.cluster.jobs.submission_forms import (
    ANNOTATION_JOB,
    GroupedPodFactory,
    OwnedPodFactory,
    object_name,
    pod_group_of,
)
from batkube.cluster.mapping import NAMESPACE, POD, PodFactory, ResourceModel, job_pod_requests, uid_of
from batkube.cluster.object_meta import annotations_of, controller_of, has_condition, labels_of
from batkube.cluster.pods.accessors import eviction_of, is_active, phase_of
from batkube.cluster.pods.resources import spec_demand
from batkube.cluster.store import ADDED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job, Requests

#: The label or annotation with a pod's rank, as set by the Job controller and by Volcano.
_RANK_KEYS = ("batch.kubernetes.io/job-completion-index", "volcano.sh/task-index")
_RANK_IN_NAME = re.compile(r"-([0-9]+)$")

Prepare = Callable[[Job, Instant], None]
"""Creates the objects to which a job refers: its queue, its PriorityClass."""


class JobCreator:
    """Creates jobs in one submission form."""

    def create(self, job: Job, now: Instant, past: PastAttempts) -> None:
        """Submit a job, or resubmit it after it was stopped. Raise ApiError if the API server rejects it."""
        raise NotImplementedError

    def forget_execution(self, execution: JobExecution) -> None:
        """Handle an aborted execution: the next pods of its job belong to a new one."""

    def evict_remaining(self, execution: JobExecution, now: Instant) -> None:
        """Evict the remaining pods of an aborted execution."""

    def clean_up(self, job: Job, now: Instant, *, is_killed: bool) -> None:
        """Delete the objects of a finished job, and its pods if it was killed."""


class PodCreator(JobCreator):
    """Creates jobs as bare pods. A resubmitted job has new pods and a new execution."""

    def __init__(
        self,
        world: World,
        model: ResourceModel,
        client: BulkClient,
        factory: PodFactory | None = None,
        prepare: Prepare = lambda job, now: None,
    ) -> None:
        self._store = world.store
        self._executions = world.executions
        self._model = model
        self._client = client
        self._factory = factory or PodFactory(model)
        self._prepare = prepare
        #: The latest spec after admission, and the resources of a pod with this spec.
        self._cached_demand: tuple[KubeObject, Requests] | None = None

    def create(self, job: Job, now: Instant, past: PastAttempts) -> None:
        """Create the job's dependencies, its execution and all its pods, or nothing if a pod is rejected."""
        self._create_dependencies(job, now)
        keys, numbers = self._factory.identities_of(job)
        execution = JobExecution(job, keys, job_pod_requests(job, self._model), now, past)
        self._executions.add(execution)
        template = {"apiVersion": "v1", "kind": "Pod", **self._factory.template_of(job)}
        try:
            self._client.create_copies(POD, template, keys, map(uid_of, numbers), now)
        except ApiError:
            self._executions.remove(execution)
            for key, number in zip(keys, numbers, strict=True):
                with contextlib.suppress(ApiError):
                    self._client.delete(POD, key, now, grace_s=0, uid=uid_of(number))
            raise
        pod = self._store.get(POD, keys[0])
        if pod is not None and pod["spec"] is not template["spec"]:
            execution.demand = self._demand_of(pod["spec"])

    def _create_dependencies(self, job: Job, now: Instant) -> None:
        """Create the objects that must exist before the pods."""
        self._prepare(job, now)

    def _demand_of(self, spec: KubeObject) -> Requests:
        """Return the resources of a pod; admission may have changed its requests (LimitRange)."""
        if self._cached_demand is None or self._cached_demand[0] is not spec:
            self._cached_demand = spec, tuple(spec_demand(spec).items())
        return self._cached_demand[1]


class PodGroupCreator(PodCreator):
    """Creates jobs as bare pods with a PodGroup, which exists until the job has finished."""

    def __init__(
        self,
        world: World,
        model: ResourceModel,
        client: BulkClient,
        factory: GroupedPodFactory,
        prepare: Prepare,
    ) -> None:
        super().__init__(world, model, client, factory, prepare)
        self._group_factory = factory
        self._storage = f"podgroups.{factory.pod_group_api.group}"

    def create(self, job: Job, now: Instant, past: PastAttempts) -> None:
        """Create the PodGroup, unless it exists, and then the pods."""
        try:
            super().create(job, now, past)
        except ApiError:
            self.clean_up(job, now, is_killed=True)
            raise

    def _create_dependencies(self, job: Job, now: Instant) -> None:
        if self._store.get(self._storage, _key(job)) is None:
            super()._create_dependencies(job, now)
            group = pod_group_of(job, self._group_factory.pod_group_api, self._group_factory.labels_without_group(job))
            self._client.create(self._storage, group, now)

    def clean_up(self, job: Job, now: Instant, *, is_killed: bool) -> None:
        """Delete the PodGroup."""
        _delete(self._client, self._storage, _key(job), now)


class ObjectCreator(JobCreator):
    """Creates jobs as one object each, for which a controller creates the pods."""

    def __init__(
        self,
        world: World,
        model: ResourceModel,
        client: Client,
        storage: str,
        describe: Callable[[Job, KubeObject], KubeObject],
        prepare: Prepare,
        *,
        restarts_whole: bool = False,
    ) -> None:
        """`describe` returns the object of a job with a pod template; its kind is stored as `storage`.

        `restarts_whole` says that the controller itself stops all pods when one of them is evicted.
        """
        self._store = world.store
        self._executions = world.executions
        self._model = model
        self._client = client
        self._storage = storage
        self._describe = describe
        self._prepare = prepare
        self._restarts_all_pods = restarts_whole
        self._factory = OwnedPodFactory(model)
        #: By job key: unfinished jobs, the execution that new pods join, and past attempts for the next execution.
        self._jobs: dict[str, Job] = {}
        self._current_executions: dict[str, JobExecution] = {}
        self._past_attempts: dict[str, PastAttempts] = {}
        world.store.subscribe(POD, self._on_pods_changed)

    def create(self, job: Job, now: Instant, past: PastAttempts) -> None:
        """Create the object; if it exists, its controller creates new pods, and may already have begun to."""
        if execution := self._current_executions.get(job.key):
            execution.past = past
        else:
            self._past_attempts[job.key] = past
        if self._store.get(self._storage, _key(job)) is None:
            self._prepare(job, now)
            self._client.create(self._storage, self._describe(job, self._factory.template_of(job)), now)
        self._jobs[job.key] = job

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Add new pods to the executions of their jobs."""
        if batch.type is not ADDED:
            return
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            job = self._jobs.get(annotations_of(pod).get(ANNOTATION_JOB, ""))
            if job is not None:
                self._add_pod(job, key, pod, now)

    def _add_pod(self, job: Job, key: Key, pod: KubeObject, now: Instant) -> None:
        execution = self._current_executions.get(job.key)
        if execution is None:
            past = self._past_attempts.pop(job.key, NO_ATTEMPTS)
            execution = JobExecution(job, [Key("")] * job.size, job_pod_requests(job, self._model), now, past)
            reference = controller_of(pod)
            execution.owner = "" if reference is None else f"{reference['kind']}/{reference['name']}"
            execution.creation_times = [now] * job.size
            self._current_executions[job.key] = execution
        rank = _rank_of(pod, execution.keys)
        if rank is not None and execution.creation_times is not None:
            execution.creation_times[rank] = now
            self._executions.add_pod(execution, rank, key)

    def forget_execution(self, execution: JobExecution) -> None:
        """Start a new execution with the next pods of the job."""
        if self._current_executions.get(execution.job.key) is execution:
            del self._current_executions[execution.job.key]

    def evict_remaining(self, execution: JobExecution, now: Instant) -> None:
        """Evict the remaining pods, so that their controller creates all of them again.

        A pod that failed without an eviction (no condition DisruptionTarget) fails the whole object. That is then
        deleted with its pods, and the job is submitted as a new object.
        """
        keys = self._store.existing(POD, execution.keys)
        pods = dict(zip(keys, self._store.objects(POD, keys), strict=True))
        if any(phase_of(pod) == "Failed" and not has_condition(pod, "DisruptionTarget") for pod in pods.values()):
            _delete(self._client, self._storage, _key(execution.job), now)
        elif not self._restarts_all_pods:
            for key in [key for key, pod in pods.items() if is_active(pod)]:
                self._client.create(POD, eviction_of(key), now, subresource="eviction")

    def clean_up(self, job: Job, now: Instant, *, is_killed: bool) -> None:
        """Delete the object of a killed job; that of any other job is deleted by its TTL, which is zero."""
        del self._jobs[job.key]
        self._current_executions.pop(job.key, None)
        self._past_attempts.pop(job.key, None)
        if is_killed:
            _delete(self._client, self._storage, _key(job), now)


def _key(job: Job) -> Key:
    return Key(f"{NAMESPACE}/{object_name(job)}")


def _delete(client: Client, storage: str, key: Key, now: Instant) -> None:
    """Delete an object, unless it is already gone."""
    with ignore_not_found():
        client.delete(storage, key, now, propagation="Background")


def _rank_of(pod: KubeObject, keys: Sequence[Key]) -> int | None:
    """Return a pod's rank in its job: the one set by its controller, else the first free one; None if all are taken."""
    metadata = pod["metadata"]
    texts = labels_of(pod) | annotations_of(pod)
    match = _RANK_IN_NAME.search(metadata["name"])
    candidates = [*(texts[key] for key in _RANK_KEYS if key in texts), *([] if match is None else [match[1]])]
    ranks = [int(word) for word in candidates if word.isdecimal() and int(word) < len(keys)]
    return next((rank for rank in (*ranks, *range(len(keys))) if not keys[rank]), None)
