"""Records jobs by watching their pods: a job is queued with its first pod, and ends with its last one.

The job of a pod is the execution of a workload's job, or the Job object that controls the pod.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.object_meta import controller_of, namespace_of
from batkube.cluster.pods.resources import demand_of
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant
from batkube.kernel.quantities import PODS
from batkube.outputs.playback.deltas import Delta, DeltaKind
from batkube.outputs.playback.model import RecordedJob


class JobAttempt:
    """The pods of one attempt to run a job."""

    __slots__ = ("alive", "is_running", "number", "running", "size")

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        #: How many pods have to run until the job does.
        self.size = size
        self.alive = 0
        self.running = 0
        self.is_running = False


class LivePod:
    """A pod that has not ended."""

    __slots__ = ("group", "is_bound", "is_running", "number", "owner", "requests")

    def __init__(self, number: int, group: JobAttempt | None, owner: str, requests: Mapping[str, int]) -> None:
        self.number = number
        self.group = group
        self.owner = owner
        self.requests = requests
        self.is_bound = False
        self.is_running = False


class LiveJobs:
    """Records jobs, and adds their deltas to those of the pods."""

    def __init__(self, world: World, deltas: list[Delta]) -> None:
        self.jobs: list[RecordedJob] = []
        self._executions = world.executions
        self._deltas = deltas
        #: The current group of each job, by its key, and the numbers of jobs.
        self._groups: dict[str, JobAttempt] = {}
        self._numbers: dict[str, int] = {}

    def record_pod(self, key: Key, pod: KubeObject, number: int, now: Instant) -> LivePod:
        """Record a new pod, and its job if it is the first pod of the job."""
        execution, reference = self._executions.find(key), controller_of(pod)
        owner = "" if reference is None else f"{reference['kind']}/{reference['name']}"
        requests = dict(execution.demand) if execution is not None else demand_of(pod)
        group = None
        if execution is not None:
            group = self._group_of_execution(execution, now)
        elif reference is not None and reference["kind"] == "Job":
            name = f"{namespace_of(key)}/{reference['name']}".removeprefix("default/")
            group = self._group(name, RecordedJob(0, "", "", "", ()), 1, now)
        if group is not None:
            group.alive += 1
        return LivePod(number, group, owner, {name: amount for name, amount in requests.items() if name != PODS})

    def _group_of_execution(self, execution: JobExecution, now: Instant) -> JobAttempt:
        job = execution.job
        described = RecordedJob(
            0, job.key, job.name, job.workload, (), "", job.size, job.walltime, job.user, job.priority, job.scheduler
        )
        return self._group(job.key, described, job.size, now)

    def _group(self, key: str, described: RecordedJob, size: int, now: Instant) -> JobAttempt:
        group = self._groups.get(key)
        if group is None:
            if key not in self._numbers:
                self._numbers[key] = len(self.jobs)
                self.jobs.append(_with_identity(described, len(self.jobs), key))
            group = self._groups[key] = JobAttempt(self._numbers[key], size)
            self._deltas.append(Delta(now, DeltaKind.JOB_QUEUED, group.number))
        return group

    def on_pod_started(self, member: LivePod, now: Instant) -> None:
        """Record that a pod runs, and that its job runs if all its pods do."""
        group = member.group
        if group is None:
            return
        group.running += 1
        if not group.is_running and group.running >= group.size:
            group.is_running = True
            self._deltas.append(Delta(now, DeltaKind.JOB_STARTED, group.number))

    def on_pod_ended(self, member: LivePod, phase: str, now: Instant) -> None:
        """Record that a pod ended, and that its job ended if it was the last pod."""
        group = member.group
        if group is None:
            return
        group.alive -= 1
        if group.alive == 0:
            key = self.jobs[group.number].key
            del self._groups[key]
            self._deltas.append(Delta(now, DeltaKind.JOB_ENDED, group.number, text=phase))


def _with_identity(job: RecordedJob, number: int, key: str) -> RecordedJob:
    workload, _, name = key.rpartition("!")
    return RecordedJob(
        number, key, name, workload, (), job.final_state, job.size, job.walltime, job.user, job.priority, job.scheduler
    )
