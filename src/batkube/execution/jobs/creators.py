"""Makes jobs into what their scheduler understands (`cluster.submission_forms`), and clears it away when they are over.

Bare pods are made here, with the course that they share. Where a controller makes the pods of a job, they are taken for
what they are as they appear: each has the job's identity in its annotations and joins its course. A job that was broken
off gets a new course with the next pods that its controller makes.
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
from batkube.cluster.mapping import NAMESPACE, POD, PodFactory, ResourceModel, job_pod_requests
from batkube.cluster.object_meta import annotations_of, controller_of, has_condition, labels_of
from batkube.cluster.pods.accessors import eviction_of, is_active, phase_of
from batkube.cluster.pods.resources import spec_demand
from batkube.cluster.store import ADDED, Batch, Key, KubeObject
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World
from batkube.kernel.instants import Instant
from batkube.workloads.model import Job, Requests

#: Where a controller writes which of a job's pods one is: the Job controller, Volcano's.
_RANK_KEYS = ("batch.kubernetes.io/job-completion-index", "volcano.sh/task-index")
_RANK_IN_NAME = re.compile(r"-([0-9]+)$")

Prepare = Callable[[Job, Instant], None]
"""Makes what a job refers to: its queue, the class of its priority."""


class JobCreator:
    """Makes jobs of one form."""

    def create(self, job: Job, now: Instant, past: PastAttempts) -> None:
        """Submit a job, or submit it again after it was stopped. Raises Refused."""
        raise NotImplementedError

    def forget_execution(self, execution: JobExecution) -> None:
        """Take note that a course will not go on: what is made next of its job is another."""

    def evict_remaining(self, execution: JobExecution, now: Instant) -> None:
        """Ask what is left of a course that was broken off to go."""

    def clean_up(self, job: Job, now: Instant, *, is_killed: bool) -> None:
        """Clear away what stood for a job that is over, its pods included if it was killed."""


class PodCreator(JobCreator):
    """Makes jobs as bare pods: with the last of them the job is gone, and the next ones have the next course."""

    def __init__(
        self,
        world: World,
        model: ResourceModel,
        client: BulkClient | None = None,
        factory: PodFactory | None = None,
        prepare: Prepare = lambda job, now: None,
    ) -> None:
        """Without `client` pods are written into the store as they are: no program or controller reads them."""
        self._store = world.store
        self._executions = world.executions
        self._model = model
        self._client = StoreClient(world.store) if client is None else client
        self._factory = factory or PodFactory(model)
        self._prepare = prepare
        #: The latest spec that was admitted, and what a pod with it takes from its node.
        self._cached_demand: tuple[KubeObject, Requests] | None = None

    def create(self, job: Job, now: Instant, past: PastAttempts) -> None:
        """Create what the job refers to and its pods, with a course that they share: all of them, or none."""
        self._create_dependencies(job, now)
        keys, uids = self._factory.identities_of(job)
        execution = JobExecution(job, keys, job_pod_requests(job, self._model), now, past)
        self._executions.add(execution)
        template = {"apiVersion": "v1", "kind": "Pod", **self._factory.template_of(job)}
        try:
            self._client.create_copies(POD, template, keys, uids, now)
        except ApiError:
            self._executions.remove(execution)
            for key, uid in zip(keys, uids, strict=True):
                with contextlib.suppress(ApiError):
                    self._client.delete(POD, key, now, grace_s=0, uid=uid)
            raise
        pod = self._store.get(POD, keys[0])
        if pod is not None and pod["spec"] is not template["spec"]:
            execution.demand = self._demand_of(pod["spec"])

    def _create_dependencies(self, job: Job, now: Instant) -> None:
        """Create what must be there before the pods."""
        self._prepare(job, now)

    def _demand_of(self, spec: KubeObject) -> Requests:
        """Return what a pod takes from its node: admission may have changed what it asks for (LimitRange)."""
        if self._cached_demand is None or self._cached_demand[0] is not spec:
            self._cached_demand = spec, tuple(spec_demand(spec).items())
        return self._cached_demand[1]


class PodGroupCreator(PodCreator):
    """Makes jobs as bare pods with a PodGroup, which is there as long as the job is."""

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
        """Create the PodGroup, unless it is there, and then the pods."""
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
    """Makes jobs as one object each, of which a controller makes the pods."""

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
        """`describe` gives the object of a job and the template of its pods; it is stored as `storage`.

        `restarts_whole` says that its controller itself stops all pods when one was evicted.
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
        #: Jobs that are not over, by key; the course that new pods join, if there is one; the past of the next.
        self._jobs: dict[str, Job] = {}
        self._current_executions: dict[str, JobExecution] = {}
        self._pasts: dict[str, PastAttempts] = {}
        world.store.subscribe(POD, self._on_pods_changed)

    def create(self, job: Job, now: Instant, past: PastAttempts) -> None:
        """Create the object; if it is there, its controller makes new pods, and has perhaps begun to."""
        if execution := self._current_executions.get(job.key):
            execution.past = past
        else:
            self._pasts[job.key] = past
        if self._store.get(self._storage, _key(job)) is None:
            self._prepare(job, now)
            self._client.create(self._storage, self._describe(job, self._factory.template_of(job)), now)
        self._jobs[job.key] = job

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        """Let new pods join the courses of their jobs."""
        if batch.type is not ADDED:
            return
        for key, pod in zip(batch.keys, batch.objects, strict=True):
            job = self._jobs.get(annotations_of(pod).get(ANNOTATION_JOB, ""))
            if job is not None:
                self._add_pod(job, key, pod, now)

    def _add_pod(self, job: Job, key: Key, pod: KubeObject, now: Instant) -> None:
        execution = self._current_executions.get(job.key)
        if execution is None:
            past = self._pasts.pop(job.key, NO_ATTEMPTS)
            execution = JobExecution(job, [Key("")] * job.size, job_pod_requests(job, self._model), now, past)
            reference = controller_of(pod)
            execution.owner = "" if reference is None else f"{reference['kind']}/{reference['name']}"
            execution.creation_times, execution.release_times = [now] * job.size, {}
            self._current_executions[job.key] = execution
        rank = _rank_of(pod, execution.keys)
        if rank is not None and execution.creation_times is not None:
            execution.creation_times[rank] = now
            self._executions.add_pod(execution, rank, key)

    def forget_execution(self, execution: JobExecution) -> None:
        """Let the next pods of the job have a course of their own."""
        if self._current_executions.get(execution.job.key) is execution:
            del self._current_executions[execution.job.key]

    def evict_remaining(self, execution: JobExecution, now: Instant) -> None:
        """Evict the pods that are left, so that their controller makes all of them anew.

        An eviction is told apart from a failure (condition DisruptionTarget), which fails the whole object: then that
        goes with its pods, and the job is submitted as another.
        """
        keys = self._store.existing(POD, execution.keys)
        pods = dict(zip(keys, self._store.objects(POD, keys), strict=True))
        if any(phase_of(pod) == "Failed" and not has_condition(pod, "DisruptionTarget") for pod in pods.values()):
            _delete(self._client, self._storage, _key(execution.job), now)
        elif not self._restarts_all_pods:
            for key in [key for key, pod in pods.items() if is_active(pod)]:
                self._client.create(POD, eviction_of(key), now, subresource="eviction")

    def clean_up(self, job: Job, now: Instant, *, is_killed: bool) -> None:
        """Leave the object to its controller and its time to live, which is zero; delete that of a killed job."""
        del self._jobs[job.key]
        self._current_executions.pop(job.key, None)
        self._pasts.pop(job.key, None)
        if is_killed:
            _delete(self._client, self._storage, _key(job), now)


def _key(job: Job) -> Key:
    return Key(f"{NAMESPACE}/{object_name(job)}")


def _delete(client: Client, storage: str, key: Key, now: Instant) -> None:
    """Delete an object that may be gone already."""
    with ignore_not_found():
        client.delete(storage, key, now, propagation="Background")


def _rank_of(pod: KubeObject, keys: Sequence[Key]) -> int | None:
    """Return which of its job's pods one is: as its controller says, or the first that is missing; None if none is."""
    metadata = pod["metadata"]
    texts = labels_of(pod) | annotations_of(pod)
    match = _RANK_IN_NAME.search(metadata["name"])
    words = [*(texts[key] for key in _RANK_KEYS if key in texts), *([] if match is None else [match[1]])]
    ranks = [int(word) for word in words if word.isdecimal() and int(word) < len(keys)]
    return next((rank for rank in (*ranks, *range(len(keys))) if not keys[rank]), None)
