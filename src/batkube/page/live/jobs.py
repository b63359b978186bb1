"""The jobs of pods, recorded from the pods alone: a job waits from its first pod until it runs, and ends with its last.

The job of a pod is the execution of a workload's job, or the Job object that controls the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.object_meta import controller_of, namespace_of
from batkube.cluster.pods.resources import demand_of
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.quantities import PODS
from batkube.outputs.playback.deltas import DeltaKind
from batkube.outputs.playback.model import RecordedJob
from batkube.page.live.delta_columns import DeltaColumns


class JobAttempt(msgspec.Struct, gc=False):
    """The pods of one attempt to run a job."""

    number: int
    #: How many pods have to run until the job does.
    size: int
    alive: int = 0
    running: int = 0
    is_running: bool = False


class LivePod(msgspec.Struct, gc=False):
    """A pod, as far as the page needs it."""

    number: int
    #: With its namespace outside of `default`.
    name: str
    job: int | None
    owner: str
    requests: Mapping[str, int]
    group: JobAttempt | None
    is_bound: bool = False
    is_running: bool = False
    reason: str = ""


class LiveJobs:
    """Records jobs, and adds their deltas to those of their pods. Times are microseconds."""

    def __init__(self, world: World, deltas: DeltaColumns) -> None:
        self.jobs: list[RecordedJob] = []
        self._executions = world.executions
        self._deltas = deltas
        #: The current attempt of each job, by its key, and the numbers of jobs.
        self._groups: dict[str, JobAttempt] = {}
        self._numbers: dict[str, int] = {}

    def new_pods(self, keys: Sequence[Key], pods: Sequence[KubeObject], first: int, time: int) -> list[LivePod]:
        """Return new pods, numbered from `first`, as members of their jobs. Record jobs that have their first pod."""
        find, members = self._executions.find, list[LivePod]()
        latest: JobExecution | None = None
        model: LivePod | None = None
        for number, (key, pod) in enumerate(zip(keys, pods, strict=True), first):
            execution = find(key)
            # Pods of one execution share everything but the name.
            if model is None or execution is None or execution is not latest:
                latest, model = execution, self._model_of(key, pod, execution, time)
            name, group = key.removeprefix("default/"), model.group
            members.append(LivePod(number, name, model.job, model.owner, model.requests, group))
            if group is not None:
                group.alive += 1
        return members

    def _model_of(self, key: Key, pod: KubeObject, execution: JobExecution | None, time: int) -> LivePod:
        """Return a pod with the job, the owner and the requests of this one."""
        reference, group = controller_of(pod), None
        owner = "" if reference is None else f"{reference['kind']}/{reference['name']}"
        demand = demand_of(pod) if execution is None else dict(execution.demand)
        requests = {name: amount for name, amount in demand.items() if name != PODS}
        if execution is not None:
            group = self._group_of_execution(execution, time)
        elif reference is not None and reference["kind"] == "Job":
            name = f"{namespace_of(key)}/{reference['name']}".removeprefix("default/")
            group = self._groups.get(name) or self._new_group(RecordedJob(0, name, "", "", ()), 1, time)
        return LivePod(-1, "", None if group is None else group.number, owner, requests, group)

    def _group_of_execution(self, execution: JobExecution, time: int) -> JobAttempt:
        job = execution.job
        group = self._groups.get(job.key)
        if group is None:
            size, terms = job.size, (job.walltime, job.user, job.priority, job.scheduler)
            described = RecordedJob(0, job.key, job.name, job.workload, (), "", size, *terms)
            group = self._new_group(described, size, time)
        return group

    def _new_group(self, described: RecordedJob, size: int, time: int) -> JobAttempt:
        key = described.key
        if key not in self._numbers:
            self._numbers[key] = len(self.jobs)
            self.jobs.append(_with_identity(described, len(self.jobs)))
        group = self._groups[key] = JobAttempt(self._numbers[key], size)
        self._deltas.append(time, DeltaKind.JOB_QUEUED, group.number)
        return group

    def on_pods_started(self, members: Iterable[LivePod], time: int) -> None:
        """Record that pods run, and their jobs of which they were the last ones."""
        for member in members:
            group = member.group
            if group is None:
                continue
            group.running += 1
            if not group.is_running and group.running >= group.size:
                group.is_running = True
                self._deltas.append(time, DeltaKind.JOB_STARTED, group.number)

    def on_pods_ended(self, members: Iterable[LivePod], phase: str, time: int) -> None:
        """Record that pods ended, and their jobs of which they were the last ones."""
        for member in members:
            group = member.group
            if group is None:
                continue
            group.alive -= 1
            if group.alive == 0:
                del self._groups[self.jobs[group.number].key]
                self._deltas.append(time, DeltaKind.JOB_ENDED, group.number, text=phase)


def _with_identity(job: RecordedJob, number: int) -> RecordedJob:
    workload, _, name = job.key.rpartition("!")
    return msgspec.structs.replace(job, number=number, name=name, workload=workload)
