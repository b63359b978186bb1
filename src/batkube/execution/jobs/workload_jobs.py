"""Manages the jobs of a workload, as the Job controller manages Jobs: it determines their outcomes and resubmits them.

This module derives the end of a job from the ends of its pods, which it sees in the store. The pods of a job share
their fate: if one of them is rejected, evicted, fails or is lost with its node, the others are stopped as well, and the
job is resubmitted or fails. The pods of a finished job are deleted at once, as with a TTL of zero.

The loss of pods is detected elsewhere. If controllers monitor the nodes, they delete the pods after a while, or the
node returns and its kubelet reports them as failed. Otherwise the loss is known at once.

Pods that a controller created are deleted by it. If one pod of such a job is lost, the others are evicted, and the job
continues with the pods that the controller creates next.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from batkube.cluster.client import BulkClient
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
from batkube.cluster.pods.accessors import TERMINAL_PHASES, finished_pods, is_finished, node_of_pod
from batkube.cluster.pods.pod_groups import without_none
from batkube.cluster.store import ADDED, DELETED, Batch, KubeObject
from batkube.cluster.world import World
from batkube.execution.jobs.creators import JobCreator
from batkube.execution.jobs.failure_outcomes import PREEMPTED, failure_outcome, stop_reason
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, instant_of
from batkube.kernel.intervals import mask_of
from batkube.workloads.model import Job

_REFUSED = FidelityNote("workload", "the API server rejected jobs at their submission")

Resubmit = Callable[[Job, PastAttempts, Instant], None]


class WorkloadJobs:
    """Reports the outcomes of all jobs."""

    def __init__(
        self,
        world: World,
        client: BulkClient,
        creator: JobCreator,
        *,
        resubmit: Resubmit | None,
        resubmit_lost: Resubmit | None = None,
        are_nodes_watched: bool = False,
        on_outcome: OutcomeListener,
        on_pods: JobPodsListener,
    ) -> None:
        """`resubmit` is None if evicted jobs fail, `resubmit_lost` if jobs fail whose nodes fail.

        `are_nodes_watched` says that controllers delete the pods of failed and deleted nodes.
        """
        self._store = world.store
        self._client = client
        self._agenda = world.agenda
        self._journal = world.journal
        self._notes = world.notes
        self._executions = world.executions
        self._creator = creator
        self._resubmit = {PREEMPTED: resubmit, NODE_LOST: resubmit_lost}
        self._are_nodes_watched = are_nodes_watched
        self._on_outcome = on_outcome
        self._on_pods = on_pods
        #: The number of pods that have ended or are gone, for executions with any.
        self._ended_counts: dict[JobExecution, int] = {}
        #: Aborted executions, with the final state (None: resubmit or fail) and the reason.
        self._decided_outcomes: dict[JobExecution, tuple[FinalState | None, str]] = {}
        world.store.subscribe(POD, self._on_pods_changed)

    # Notifications

    def handle_node_loss(self, execution: JobExecution, now: Instant) -> None:
        """Handle the loss of a node with pods of the job; work that had already ended is not lost."""
        if execution.ended is not None:
            self._on_pods_deleted(execution, now)
            return
        execution.has_lost_node = True
        if not self._are_nodes_watched:
            self._decide_outcome(execution, None, NODE_LOST, now)

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is ADDED or isinstance(batch.decision, Binding):
            return
        if batch.status is not None and batch.status["phase"] not in TERMINAL_PHASES:
            return
        for execution, positions, _ in self._executions.group_by_execution(batch.keys):
            if batch.type is DELETED:
                self._on_pods_deleted(execution, now)
                continue
            pods = batch.at(positions)
            if ended_pods := finished_pods(pods, batch.status):
                self._on_pods_ended(execution, ended_pods, now)
            elif execution.ended is None and is_being_deleted(pods[0]):
                self._decide_outcome(execution, None, stop_reason(execution), now)

    def _on_pods_ended(self, execution: JobExecution, pods: Sequence[KubeObject], now: Instant) -> None:
        """Handle pods that have ended, with their execution or before it."""
        if execution in self._decided_outcomes:
            self._resubmit_when_gone(execution, now)
        elif execution.ended is None:
            state, reason = (None, NODE_LOST) if execution.has_lost_node else failure_outcome(pods[0]["status"])
            self._decide_outcome(execution, state, reason, now)
        else:
            self._count_ended(execution, len(pods), now)

    def _count_ended(self, execution: JobExecution, ended: int, now: Instant) -> None:
        """Count pods that have ended with their execution; finish the job with the last of them."""
        self._ended_counts[execution] = self._ended_counts.get(execution, 0) + ended
        if self._ended_counts[execution] == len(execution.keys) and execution.ended is not None:
            self._agenda.book(now, Rank.FINISH, functools.partial(self._finish_job, execution, "", execution.ended))

    def _on_pods_deleted(self, execution: JobExecution, now: Instant) -> None:
        """Handle deleted pods; if the work had ended and only their report was delayed, the outcome is unchanged."""
        if execution in self._decided_outcomes:
            self._resubmit_when_gone(execution, now)
        elif execution.ended is None:
            self._decide_outcome(execution, None, stop_reason(execution), now)
        elif len(execution.keys) > self._ended_counts.get(execution, 0):
            self._count_ended(execution, len(execution.keys) - self._ended_counts.get(execution, 0), now)

    def _resubmit_when_gone(self, execution: JobExecution, now: Instant) -> None:
        """Resubmit an aborted job once its last pod is gone; finished pods of a controller may remain."""
        remaining = self._store.objects(POD, self._store.existing(POD, execution.keys))
        if not remaining or (execution.is_owned and all(map(is_finished, remaining))):
            self._agenda.book(now, Rank.FINISH, functools.partial(self._resubmit_or_fail, execution))

    def _decide_outcome(self, execution: JobExecution, state: FinalState | None, reason: str, now: Instant) -> None:
        """Set the outcome of an aborted job, unless it is set; `state` is None for one that was evicted or lost."""
        if execution not in self._decided_outcomes:
            self._decided_outcomes[execution] = state, reason
            self._creator.forget_execution(execution)
            self._agenda.book(now, Rank.FINISH, functools.partial(self._stop_remaining_pods, execution))

    # The end

    def _stop_remaining_pods(self, execution: JobExecution, now: Instant) -> None:
        """Stop the other pods of a job after one of them has failed or was deleted."""
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
            # No kubelet will report that a lost pod has stopped, so all pods are force-deleted.
            self._resubmit_or_fail(execution, now)
            return
        # Bound pods stop within the same grace period, and hold their nodes until then. Others are deleted at once.
        self._client.delete_all(POD, [key for key, pod in pods.items() if not node_of_pod(pod)], now)
        others = [key for key, pod in pods.items() if node_of_pod(pod) and not is_being_deleted(pod)]
        grace_s = -(-(instant_of(deadlines[0]) - now) // NANOSECONDS_PER_SECOND)
        self._client.delete_all(POD, others, now, grace_s=grace_s)

    def _replace_pods(self, execution: JobExecution, reason: str, now: Instant) -> None:
        """Have a controller replace the pods of its job, if the job is to be resubmitted."""
        if self._resubmit[reason] is None:
            self._resubmit_or_fail(execution, now)
            return
        self._creator.evict_remaining(execution, now)
        self._resubmit_when_gone(execution, now)

    def _resubmit_or_fail(self, execution: JobExecution, now: Instant) -> None:
        """Resubmit the job or mark it as failed; only once, even if several pods were deleted at one instant."""
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
        """Report the outcome of the job: that of its execution, or `state` and `past` of an aborted one."""
        state = state or execution.state
        assert state is not None, f"job {execution.job.key} has no final state"
        began, past = execution.began, past or execution.past_if_completed
        self._journal.append(now, "finish", job=execution.job.key, state=state.value)
        phase = "Succeeded" if state is FinalState.SUCCESS else "Failed"
        self._delete_pods(execution, phase, reason, now, finished)
        self._creator.clean_up(execution.job, now, is_killed=execution.ended is None)
        self._on_outcome(
            Outcome(
                job=execution.job,
                state=state,
                scheduled=max(without_none(execution.scheduled), default=None),
                started=began,
                finished=finished if began is not None else None,
                node_lost=execution.aborted if execution.has_lost_node else None,
                machines=mask_of(without_none(execution.machine_ids)),
                past=past,
            )
        )

    def _delete_pods(self, execution: JobExecution, phase: str, reason: str, now: Instant, finished: Instant) -> None:
        """Record the pods, set their terminal status and delete them, unless a controller does."""
        alive = [] if execution.is_owned else self._store.existing(POD, execution.keys)
        if execution in self._decided_outcomes and not execution.is_owned:
            pods = dict(zip(alive, self._store.objects(POD, alive), strict=True))
            terminal_fields = {"phase": phase, "reason": reason} if reason else {"phase": phase}
            ended = {key: {**pod["status"], **terminal_fields} for key, pod in pods.items() if not is_finished(pod)}
            self._client.set_statuses(POD, list(ended), list(ended.values()), now)
        self._report_pods(execution, phase, reason, finished)
        self._client.delete_all(POD, alive, now)
        self._executions.remove(execution)
        self._decided_outcomes.pop(execution, None)
        self._ended_counts.pop(execution, None)

    def record_refusal(self, job: Job, message: str, now: Instant) -> None:
        """Record a job that the API server rejected at its submission."""
        self._journal.append(now, "refuse", job=job.key, reason=message)
        self._notes.add(_REFUSED, example=f"job {job.key}: {message}")
        self._on_outcome(Outcome(job=job, state=FinalState.REJECTED, past=NO_ATTEMPTS))

    def report_remaining(self) -> None:
        """Record the pods that are alive at the end of the run."""
        for execution in self._executions.live():
            if execution.began is not None or not execution.running_count:
                self._report_pods(execution, "Pending" if execution.began is None else "Running", "", None)
                continue
            started = [rank for rank, instant in enumerate(execution.started) if instant is not None]
            pending = [rank for rank, instant in enumerate(execution.started) if instant is None]
            reason = f"waits for {len(pending)} of the {len(execution.keys)} pods of its job"
            self._report_some_pods(execution, started, "Running", reason, None)
            self._report_some_pods(execution, pending, "Pending", "", None)

    def _report_pods(self, execution: JobExecution, phase: str, reason: str, finished: Instant | None) -> None:
        """Record the pods of a job; those of a controller were created one by one, and perhaps not all of them."""
        if execution.creation_times is not None:
            created = [rank for rank, key in enumerate(execution.keys) if key]
            self._report_some_pods(execution, created, phase, reason, finished)
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
                released=list(map(execution.release_times.get, range(len(execution.keys))))
                if execution.release_times
                else (),
            )
        )

    def _report_some_pods(
        self, execution: JobExecution, ranks: Sequence[int], phase: str, reason: str, finished: Instant | None
    ) -> None:
        """Record some pods of a job, grouped by their times of creation and release."""
        creation_times = execution.creation_times or [execution.created] * len(execution.keys)
        release_times = {} if execution.ended is not None or finished is None else execution.release_times
        spans = {
            rank: (creation_times[rank], release_times.get(rank, finished)) for rank in ranks if execution.keys[rank]
        }
        for span in dict.fromkeys(spans.values()):
            group = [rank for rank in spans if spans[rank] == span]
            self._on_pods(
                JobPodsRecord(
                    job=execution.job,
                    keys=[execution.keys[rank] for rank in group],
                    created=span[0],
                    machine_ids=[execution.machine_ids[rank] for rank in group],
                    scheduled=[execution.scheduled[rank] for rank in group],
                    started=[execution.started[rank] for rank in group],
                    finished=span[1],
                    phase=phase,
                    reason=reason,
                    owner=execution.owner,
                    released=list(map(execution.release_times.get, group)) if execution.release_times else (),
                )
            )
