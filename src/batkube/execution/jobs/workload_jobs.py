"""Looks after the jobs of a workload, as a Job controller does after its own: what they do, and what became of them.

Kubelets know pods; here their ends are put together to the end of a job. Pods of a job stand and fall together: when
one is rejected, evicted, fails or is lost with its node, the others go as well, and the job is queued again or has
failed. The pods of a job that is over are deleted at once, as with a TTL of zero.

When it becomes known that pods were lost is not decided here. Where controllers watch over nodes, they delete the pods
after a while (or the node comes back, and its kubelet says that they failed); where nobody does, it is known at once.

Pods that a controller makes are its own to delete. If one of a job's is taken from it, the others are asked to leave,
and the job goes on with those that the controller makes next.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from batkube.cluster.decisions import Binding
from batkube.cluster.jobs.executions import JobExecution
from batkube.cluster.jobs.outcomes import (
    NO_ATTEMPTS,
    FinalState,
    JobPodsListener,
    JobPodsRecord,
    Outcome,
    OutcomeListener,
    PastAttempts,
)
from batkube.cluster.mapping import NODE_LOST, POD
from batkube.cluster.object_meta import is_being_deleted
from batkube.cluster.pods.accessors import finished_pods, is_finished, node_of_pod
from batkube.cluster.store import ADDED, DELETED, Batch, KubeObject
from batkube.cluster.world import World
from batkube.execution.jobs.creators import JobCreator
from batkube.execution.jobs.failure_outcomes import PREEMPTED, failure_outcome, stop_reason, with_deletion_timestamp
from batkube.execution.profiles.run_times import check_created_nodes, run_time_on
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Instant
from batkube.kernel.intervals import mask_of
from batkube.workloads.model import Job

if TYPE_CHECKING:
    from batkube.execution.jobs.work_runners import WorkRunner

_REFUSED = FidelityNote("workload", "the API refused jobs when they were submitted")

Resubmit = Callable[[Job, PastAttempts, Instant], None]


class WorkloadJobs:
    """Knows what each job does, and sees it through to its outcome."""

    def __init__(
        self,
        world: World,
        maker: JobCreator,
        *,
        resubmit: Resubmit | None,
        resubmit_lost: Resubmit | None = None,
        are_nodes_watched: bool = False,
        work: WorkRunner | None = None,
        on_outcome: OutcomeListener,
        on_pods: JobPodsListener,
    ) -> None:
        """`resubmit` is None when evicted jobs fail, `resubmit_lost` when those fail whose nodes do.

        `are_nodes_watched` says that controllers delete the pods of nodes that are silent or gone. `work` is None when
        nothing that jobs do depends on what others do.
        """
        self._store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._notes = world.notes
        self._executions = world.executions
        self._machines = world.machines
        self._creator = maker
        self._resubmit = {PREEMPTED: resubmit, NODE_LOST: resubmit_lost}
        self._are_nodes_watched = are_nodes_watched
        self._work_runner = work
        self.on_end: Callable[[JobExecution, Instant], None] | None = None
        self._on_outcome = on_outcome
        self._on_pods = on_pods
        #: How many pods of a course have ended or are gone, for courses of which some have.
        self._ended_counts: dict[JobExecution, int] = {}
        #: Courses whose jobs will not go on as they were meant to: how they end, and why.
        self._decided_outcomes: dict[JobExecution, tuple[FinalState | None, str]] = {}
        world.store.subscribe(POD, self._on_pods_changed, author=self)

    # The work

    def record_binding(self, execution: JobExecution, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Record where pods of a job were put."""
        known = list(map(self._machines.ids.get, nodes))
        if None not in known:
            for rank, number in zip(ranks, known, strict=True):
                execution.machine_ids[rank] = number

    def start(self, execution: JobExecution, now: Instant) -> Instant | None:
        """All pods run: the profile begins, and its end is known, unless it depends on what others do."""
        job = execution.job
        machines = [self._machines.machines[number] for number in execution.machine_ids if number is not None]
        flows = self._work_runner is not None and self._work_runner.handles(job)
        if created := [one for one in machines if one.id >= self._machines.described_count]:
            check_created_nodes(job, created, self._notes, flows=flows)
        if self._work_runner is not None and flows:
            self._journal.append(now, "start", job=job.key)
            self._work_runner.start(execution, [machine.name for machine in machines], self._end_work, now)
            return None
        length, ret = run_time_on(job.profile, machines)
        execution.state = FinalState.FAILED if ret else FinalState.SUCCESS
        # Batsim lets a job succeed only when it needs strictly less than its walltime (do_delay_task).
        if job.walltime is not None and length >= job.walltime:
            length, execution.state = job.walltime, FinalState.WALLTIME
        self._journal.append(now, "start", job=job.key)
        return Instant(now + length)

    def _end_work(self, execution: JobExecution, state: FinalState, now: Instant) -> None:
        execution.state = state
        assert self.on_end is not None, "courses come with somebody who looks after their pods"
        self.on_end(execution, now)

    def complete(self, execution: JobExecution, now: Instant) -> None:
        """All pods have ended together: so has the job."""
        self._count_ended(execution, len(execution.keys), now)

    def abort(self, execution: JobExecution, now: Instant) -> None:
        """Give up work whose pods are being taken away."""
        if self._work_runner is not None:
            self._work_runner.abort(execution, now)

    def handle_node_loss(self, execution: JobExecution, now: Instant) -> None:
        """A node with pods of the job failed or is gone: nothing is lost of work that had ended before."""
        if execution.ended is not None:
            self._on_pods_deleted(execution, now)
            return
        execution.has_lost_node = True
        if not self._are_nodes_watched:
            self._decide_outcome(execution, None, NODE_LOST, now)

    # What it hears

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is ADDED or isinstance(batch.decision, Binding):
            return
        for execution, positions, _ in self._executions.group_by_execution(batch.keys):
            if batch.type is DELETED:
                self._on_pods_deleted(execution, now)
                continue
            pods = batch.at(positions)
            if over := finished_pods(pods, batch.status):
                self._on_pods_ended(execution, over, now)
            elif execution.ended is None and is_being_deleted(pods[0]):
                self._decide_outcome(execution, None, stop_reason(execution), now)

    def _on_pods_ended(self, execution: JobExecution, pods: Sequence[KubeObject], now: Instant) -> None:
        """Pods have ended: with their course, or before it for a reason of their own."""
        if execution in self._decided_outcomes:
            self._resubmit_when_gone(execution, now)
        elif execution.ended is None:
            state, reason = (None, NODE_LOST) if execution.has_lost_node else failure_outcome(pods[0]["status"])
            self._decide_outcome(execution, state, reason, now)
        else:
            self._count_ended(execution, len(pods), now)

    def _count_ended(self, execution: JobExecution, ended: int, now: Instant) -> None:
        """Take note that pods have ended with their course; with the last of them the job has."""
        self._ended_counts[execution] = self._ended_counts.get(execution, 0) + ended
        if self._ended_counts[execution] == len(execution.keys) and execution.ended is not None:
            self._agenda.book(now, Rank.FINISH, functools.partial(self._finish_job, execution, "", execution.ended))

    def _on_pods_deleted(self, execution: JobExecution, now: Instant) -> None:
        """Somebody deleted pods: if the work had ended, and only the report was on its way, the outcome stands."""
        if execution in self._decided_outcomes:
            self._resubmit_when_gone(execution, now)
        elif execution.ended is None:
            self._decide_outcome(execution, None, stop_reason(execution), now)
        elif len(execution.keys) > self._ended_counts.get(execution, 0):
            self._count_ended(execution, len(execution.keys) - self._ended_counts.get(execution, 0), now)

    def _resubmit_when_gone(self, execution: JobExecution, now: Instant) -> None:
        """Go on with a job that was broken off once the last of its pods is gone; what a controller has may stay."""
        left = self._store.objects(POD, self._store.existing(POD, execution.keys))
        if not left or (execution.is_owned and all(map(is_finished, left))):
            self._agenda.book(now, Rank.FINISH, functools.partial(self._resubmit_or_fail, execution))

    def _decide_outcome(self, execution: JobExecution, state: FinalState | None, reason: str, now: Instant) -> None:
        """Decide how the job ends, unless that is decided; `state` is None for one that was stopped or lost."""
        if execution not in self._decided_outcomes:
            self._decided_outcomes[execution] = state, reason
            self._creator.forget_execution(execution)
            self._agenda.book(now, Rank.FINISH, functools.partial(self._stop_remaining_pods, execution))

    # The end

    def _stop_remaining_pods(self, execution: JobExecution, now: Instant) -> None:
        """Let the other pods of a job go the way of the one that broke it."""
        state, reason = self._decided_outcomes[execution]
        if state is not None:
            self._finish_job(execution, reason, now, now, state)
            return
        if execution.is_owned:
            self._replace_pods(execution, reason, now)
            return
        alive = self._store.existing(POD, execution.keys)
        pods = dict(zip(alive, self._store.objects(POD, alive), strict=True))
        deadlines = [pod["metadata"]["deletionTimestamp"] for pod in pods.values() if is_being_deleted(pod)]
        if not deadlines or reason == NODE_LOST:
            # Nobody is there to say that a lost pod has stopped, so all are removed by force.
            self._resubmit_or_fail(execution, now)
            return
        # They stop within the same grace period, and hold their nodes until they have. Others have nothing to stop.
        self._store.delete(POD, [key for key, pod in pods.items() if not node_of_pod(pod)], now, author=self)
        others = {
            key: with_deletion_timestamp(pod, deadlines[0])
            for key, pod in pods.items()
            if node_of_pod(pod) and not is_being_deleted(pod)
        }
        self._store.replace(POD, list(others), list(others.values()), now, author=self)

    def _replace_pods(self, execution: JobExecution, reason: str, now: Instant) -> None:
        """Have the pods that a controller made replaced, unless the job is not to go on."""
        if self._resubmit[reason] is None:
            self._resubmit_or_fail(execution, now)
            return
        self._creator.evict_remaining(execution, now)
        self._resubmit_when_gone(execution, now)

    def _resubmit_or_fail(self, execution: JobExecution, now: Instant) -> None:
        """Queue the job again, or let it fail; once, however many of its pods were deleted at one instant."""
        if execution not in self._decided_outcomes:
            return
        _, reason = self._decided_outcomes[execution]
        past, resubmit = execution.past_if_discarded(now), self._resubmit[reason]
        past = past._replace(evictions=past.evictions + (reason == PREEMPTED))
        if resubmit is None:
            state = FinalState.KILLED if reason == PREEMPTED else FinalState.FAILED
            self._finish_job(execution, reason, now, now, state, past)
            return
        self._delete_pods(execution, "Failed", reason, now, now)
        resubmit(execution.job, past, now)

    def _finish_job(
        self,
        execution: JobExecution,
        reason: str,
        finished: Instant,
        now: Instant,
        state: FinalState | None = None,
        past: PastAttempts | None = None,
    ) -> None:
        """Say how the job ended: as its course did, or in another `state`, with the `past` of one that was stopped."""
        state = state or execution.state
        assert state is not None, f"nobody said how {execution.job.key} ended"
        began, past = execution.began, past or execution.past_if_completed
        self._journal.append(now, "finish", job=execution.job.key, state=state.value)
        phase = "Succeeded" if state is FinalState.SUCCESS else "Failed"
        self._delete_pods(execution, phase, reason, now, finished)
        self._creator.clean_up(execution.job, now, is_killed=execution.ended is None)
        self._on_outcome(
            Outcome(
                job=execution.job,
                state=state,
                scheduled=max([instant for instant in execution.scheduled if instant is not None], default=None),
                started=began,
                finished=finished if began is not None else None,
                node_lost=execution.aborted if execution.has_lost_node else None,
                machines=mask_of([number for number in execution.machine_ids if number is not None]),
                past=past,
            )
        )

    def _delete_pods(self, execution: JobExecution, phase: str, reason: str, now: Instant, finished: Instant) -> None:
        """Tell the story of the pods, see that each has a terminal status, and delete them, unless another does."""
        alive = [] if execution.is_owned else self._store.existing(POD, execution.keys)
        if execution in self._decided_outcomes and not execution.is_owned:
            words = {"phase": phase, "reason": reason} if reason else {"phase": phase}
            pods = zip(alive, self._store.objects(POD, alive), strict=True)
            ended = {key: {**pod, "status": {**pod["status"], **words}} for key, pod in pods if not is_finished(pod)}
            self._store.replace(POD, list(ended), list(ended.values()), now, author=self)
        self._report_pods(execution, phase, reason, finished)
        self._store.delete(POD, alive, now, author=self)
        self._executions.remove(execution)
        self._decided_outcomes.pop(execution, None)
        self._ended_counts.pop(execution, None)

    def record_refusal(self, job: Job, why: str, now: Instant) -> None:
        """A job could not even be submitted: the API does not take it."""
        self._journal.append(now, "refuse", job=job.key, reason=why)
        self._notes.add(_REFUSED, example=f"job {job.key}: {why}")
        self._on_outcome(Outcome(job=job, state=FinalState.REJECTED, past=NO_ATTEMPTS))

    def report_remaining(self) -> None:
        """Tell of the pods that the end of the run has met alive; those of a job that has not begun wait for others."""
        for execution in self._executions.live():
            if execution.began is not None or not execution.running_count:
                self._report_pods(execution, "Pending" if execution.began is None else "Running", "", None)
                continue
            up = [rank for rank, instant in enumerate(execution.started) if instant is not None]
            others = [rank for rank, instant in enumerate(execution.started) if instant is None]
            why = f"waits for {len(others)} of the {len(execution.keys)} pods of its job"
            self._report_some_pods(execution, up, "Running", why, None)
            self._report_some_pods(execution, others, "Pending", "", None)

    def _report_pods(self, execution: JobExecution, phase: str, reason: str, finished: Instant | None) -> None:
        """Tell what became of the pods of a job; those of a controller came one by one, and perhaps not all did."""
        if execution.creation_times is not None:
            made = [rank for rank, key in enumerate(execution.keys) if key]
            self._report_some_pods(execution, made, phase, reason, finished)
            return
        self._on_pods(
            JobPodsRecord(
                job=execution.job,
                keys=execution.keys,
                created=execution.created,
                machine_ids=execution.machine_ids,
                scheduled=execution.scheduled,
                started=execution.started,
                finished=finished,
                phase=phase,
                reason=reason,
            )
        )

    def _report_some_pods(
        self, execution: JobExecution, ranks: Sequence[int], phase: str, reason: str, finished: Instant | None
    ) -> None:
        """Tell what became of some pods of a job: together those that came, and left their nodes, together."""
        births = execution.creation_times or [execution.created] * len(execution.keys)
        departures = {} if execution.ended is not None or finished is None else execution.release_times
        spans = {rank: (births[rank], departures.get(rank, finished)) for rank in ranks if execution.keys[rank]}
        for span in dict.fromkeys(spans.values()):
            some = [rank for rank in spans if spans[rank] == span]
            self._on_pods(
                JobPodsRecord(
                    job=execution.job,
                    keys=[execution.keys[rank] for rank in some],
                    created=span[0],
                    machine_ids=[execution.machine_ids[rank] for rank in some],
                    scheduled=[execution.scheduled[rank] for rank in some],
                    started=[execution.started[rank] for rank in some],
                    finished=span[1],
                    phase=phase,
                    reason=reason,
                    owner=execution.owner,
                )
            )
