"""The runtime of the pods of workload jobs: a start barrier and one common end.

The containers of such a pod run until the work of the job is done. The work, a Batsim profile, begins when the last pod
of the job runs, and ends for all pods at once. It is aborted when one of them is stopped or lost.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from batkube.cluster.jobs.executions import ExecutionGroup, JobExecution
from batkube.cluster.jobs.outcomes import FinalState
from batkube.cluster.mapping import NODE, NODE_LOST
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.pod_groups import without_none
from batkube.cluster.store import ADDED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.execution.jobs.pod_statuses import JobPodStatuses, Termination
from batkube.execution.pods.container_plan import EXIT_KILLED, EXIT_LOST, EXIT_TERMINATED
from batkube.execution.pods.runtime import OnEnded
from batkube.execution.pods.status import DEADLINE_EXCEEDED
from batkube.execution.profiles.run_times import check_created_nodes, run_time_on
from batkube.kernel.agenda import Rank
from batkube.kernel.errors import RunFailed
from batkube.kernel.fidelity import FidelityNote, Severity
from batkube.kernel.instants import Duration, Instant, after, seconds

if TYPE_CHECKING:
    from batkube.execution.jobs.work_runners import WorkRunner
    from batkube.execution.scripts.environment import ContainerFiles

#: How long pods stay bound to a node that has failed (Kubernetes: plugin/pkg/admission/defaulttolerationseconds).
_TOLERATION: Duration = seconds(300)
#: The run fails when a job was bound this often in a row to failed nodes, without doing any work.
_MAX_FAILED_BINDINGS = 100
_NO_SUCH_NODE = FidelityNote("scheduler", "bound a pod to a node that does not exist", Severity.VIOLATION)
_EXIT_FAILED = 1

_SUCCEEDED, _FAILED = Termination(0), Termination(_EXIT_FAILED)
_STOPPED, _LOST = Termination(EXIT_TERMINATED), Termination(EXIT_LOST, NODE_LOST)
_AT_WALLTIME = Termination(EXIT_KILLED, *DEADLINE_EXCEEDED)


class JobRuntime:
    """Implements `PodRuntime` for the pods of job executions."""

    def __init__(self, world: World, statuses: JobPodStatuses, work: WorkRunner | None = None) -> None:
        """`work` is None if the run time of a job never depends on other jobs."""
        self._store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._notes = world.notes
        self._executions = world.executions
        self._machines = world.machines
        self._statuses = statuses
        self._work_runner = work
        self.on_ended: OnEnded = lambda execution, ranks, now: None
        #: Called when a node with pods of an execution has failed or was deleted.
        self.on_execution_lost: Callable[[JobExecution, Instant], None] = lambda execution, now: None
        #: By job: how often in a row it was bound to a failed node, and its lost work before that.
        self._failed_bindings: dict[str, tuple[int, int]] = {}

    def groups_in(self, batch: Batch, now: Instant) -> Iterable[ExecutionGroup]:
        """Return the executions in a batch; their pods are created unbound."""
        return () if batch.type is ADDED else self._executions.group_by_execution(batch.keys)

    # Start

    def record_binding(self, execution: JobExecution, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Record the machines to which pods were bound."""
        machine_ids = list(map(self._machines.ids.get, nodes))
        if None not in machine_ids:
            execution.record_machines(ranks, machine_ids)

    def reject(self, execution: JobExecution, ranks: Sequence[int], reason: str, message: str, now: Instant) -> None:
        """Report that pods are rejected, by an appointment at this instant."""
        end = Termination(EXIT_LOST, reason, message and f"Pod was rejected: {message}")
        report = functools.partial(self._statuses.set_terminated, execution, ranks, end)
        self._agenda.book(now, Rank.FINISH, report)

    def admit(self, execution: JobExecution, starts: Mapping[Instant, Sequence[int]], now: Instant) -> None:
        """Book the starts of pods."""
        for start, ranks in starts.items():
            self._agenda.book(start, Rank.START, functools.partial(self._start, execution, ranks))

    def _start(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Set pods to running; with the last pod of the execution, its work begins."""
        live_ranks = execution.live_ranks(ranks)
        if live_ranks:
            execution.record_start(live_ranks, now)
            self._statuses.set_running(execution, live_ranks, now)
            if execution.running_count == len(execution.keys) and execution.aborted is None:
                self._begin_work(execution, now)

    def _begin_work(self, execution: JobExecution, now: Instant) -> None:
        """Begin the job's profile, and book its end, unless that depends on other jobs."""
        job = execution.job
        machines = list(map(self._machines.machines.__getitem__, without_none(execution.machine_ids)))
        flows = self._work_runner is not None and self._work_runner.handles(job)
        if created := self._machines.created_among(machines):
            check_created_nodes(job, created, self._notes, flows=flows)
        self._journal.append(now, "start", job=job.key)
        if self._work_runner is not None and flows:
            self._work_runner.start(execution, [machine.name for machine in machines], self._on_work_done, now)
            return
        length, ret = run_time_on(job.profile, machines)
        execution.state = FinalState.FAILED if ret else FinalState.SUCCESS
        # Batsim lets a job succeed only when it needs strictly less than its walltime (do_delay_task).
        if job.walltime is not None and length >= job.walltime:
            length, execution.state = job.walltime, FinalState.WALLTIME
        end = functools.partial(self._end_work, execution)
        execution.end_appointment = self._agenda.book(Instant(now + length), Rank.FINISH, end)

    def update(self, execution: JobExecution, rank: int, pod: KubeObject, now: Instant) -> None:
        """Do nothing: the work of a job does not depend on its pods' specs."""

    # End

    def _on_work_done(self, execution: JobExecution, state: FinalState, now: Instant) -> None:
        execution.state = state
        self._end_work(execution, now)

    def _end_work(self, execution: JobExecution, now: Instant) -> None:
        execution.end_appointment, execution.ended = None, now
        self.on_ended(execution, range(len(execution.keys)), now)

    def files_of(self, execution: JobExecution) -> Mapping[str, ContainerFiles]:
        """Return no files: a profile has none."""
        return {}

    def begin_stop(self, execution: JobExecution, rank: int, now: Instant) -> None:
        """Abort the work, which cannot continue without all pods."""
        self._abort(execution, now)

    def kill(self, execution: JobExecution, rank: int, now: Instant) -> None:
        """Do nothing: the work was aborted when the pod began to stop."""

    def release(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Release the addresses of pods, and record when they left their nodes."""
        self._statuses.release(execution, ranks)
        execution.record_release(ranks, now)

    def report_end(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Write that pods have ended, with the work or before it."""
        end = _STOPPED
        if execution.ended is not None:
            ends = {FinalState.SUCCESS: _SUCCEEDED, FinalState.WALLTIME: _AT_WALLTIME}
            end = _FAILED if execution.state is None else ends.get(execution.state, _FAILED)
        self._statuses.set_terminated(execution, ranks, end, now)

    def on_gone(self, execution: JobExecution, ranks: Sequence[int], now: Instant) -> None:
        """Abort the work, which cannot continue without all pods."""
        if execution.ended is None and execution.live_ranks(ranks):
            self._abort(execution, now)

    def _abort(self, execution: JobExecution, now: Instant) -> None:
        if execution.ended is None and execution.aborted is None:
            execution.aborted = now
        if execution.end_appointment is not None:
            self._agenda.cancel(execution.end_appointment)
            execution.end_appointment = execution.state = None
        elif execution.ended is None and self._work_runner is not None:
            self._work_runner.abort(execution, now)

    # Failed nodes

    def on_held(self, execution: JobExecution, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Count a job that was bound to failed nodes as lost after a while; reject it if there is no such node."""
        missing = [node for node in nodes if self._store.get(NODE, Key(node)) is None]
        if missing:
            self._notes.add(_NO_SUCH_NODE, example=f"{execution.title} on {missing[0]}")
            self.reject(execution, ranks, f"node {missing[0]} does not exist", "", now)
        elif not execution.has_lost_node:
            execution.has_lost_node = True
            self._count_failed_binding(execution, now)
            self._agenda.book(after(now, _TOLERATION), Rank.FINISH, functools.partial(self._report_lost, execution))

    def _count_failed_binding(self, execution: JobExecution, now: Instant) -> None:
        """Count how many times in a row a job was bound to a failed node, and fail the run beyond the limit.

        A scheduler that ignores node failures would bind the job to failed nodes forever.
        """
        count, work = self._failed_bindings.get(execution.job.key, (0, -1))
        count = count + 1 if work == execution.past.lost_work else 1
        self._failed_bindings[execution.job.key] = count, execution.past.lost_work
        if count > _MAX_FAILED_BINDINGS:
            self._agenda.book(now, Rank.FINISH, functools.partial(_fail_run, execution))

    def _report_lost(self, execution: JobExecution, now: Instant) -> None:
        """Report that an execution is lost, unless it has ended or was replaced meanwhile."""
        if self._executions.find(execution.keys[0]) is execution:
            self.on_execution_lost(execution, now)

    def on_node_lost(self, execution: JobExecution, now: Instant) -> None:
        """Report that an execution is lost."""
        self.on_execution_lost(execution, now)

    def resume(self, execution: JobExecution, rank: int, pod: KubeObject, now: Instant) -> None:
        """Write that a pod was stopped or lost with its node: restartPolicy is Never."""
        if self._executions.find(execution.keys[rank]) is not None:
            end = _STOPPED if is_being_deleted(pod) else _LOST
            self._statuses.set_terminated(execution, [rank], end, now)


def _fail_run(execution: JobExecution, now: Instant) -> None:
    raise RunFailed(
        f"job {execution.job.key} was bound {_MAX_FAILED_BINDINGS} times in a row to nodes that had failed: "
        "its scheduler ignores node failures, and the run would not end\n"
        "  remedy: use a scheduler that watches nodes, let nodes return, or let such jobs fail with --on-failure fail"
    )
