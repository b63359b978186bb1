"""The kubelets of all simulated nodes: what happens to a pod once a scheduler has bound it.

    bound ─▶ admitted (or rejected: OutOf…) ─▶ Running ─▶ the gang's work ─▶ Succeeded / Failed ─▶ deleted

Kubelets hear of bindings, deletions and rejections through the store only, and answer through it. They never act inside
a change: they book what follows on the agenda. What happens to a gang's pods together is written together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from batkube.cluster.gangs import Gang, Roster
from batkube.cluster.mapping import POD, REJECTED_BY_SCHEDULER
from batkube.cluster.outcomes import FinalState, GangListener, GangRecord, Outcome, OutcomeListener
from batkube.cluster.store import ADDED, DELETED, Batch, KubeObject
from batkube.cluster.world import World
from batkube.execution.latencies import Delays
from batkube.execution.nodes import NodeAccounts
from batkube.execution.profiles import course_on
from batkube.kernel.agenda import Rank
from batkube.kernel.fidelity import FidelityNote, Severity
from batkube.kernel.instants import Instant, instant_of, rfc3339
from batkube.kernel.intervals import mask_of
from batkube.platforms.model import Machine

PREEMPTED = "Preempted"
_NO_SUCH_NODE = FidelityNote("scheduler", "bound a pod to a node that does not exist", Severity.VIOLATION)


class Execution:
    """How far the pods of a gang have come; index i of every list is the pod of rank i."""

    __slots__ = ("finish_appointment", "gang", "machine_ids", "over", "released", "running", "scheduled", "started")

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        size = gang.job.size
        #: The machine that admitted each pod; None before.
        self.machine_ids: list[int | None] = [None] * size
        self.scheduled: list[Instant | None] = [None] * size
        self.started: list[Instant | None] = [None] * size
        #: How many pods have started; the work begins when it reaches the job's size.
        self.running = 0
        #: The end of the work, once it has begun.
        self.finish_appointment: int | None = None
        #: True once the job's fate is sealed; whatever was still booked for the gang is void then.
        self.over = False
        #: True once the pods' resources were given back to their nodes.
        self.released = False

    @property
    def admitted(self) -> list[int]:
        """The machines that hold its pods, one entry per pod."""
        return [number for number in self.machine_ids if number is not None]

    @property
    def work_began(self) -> Instant | None:
        """When the last pod came up; None while some have not."""
        if self.running < len(self.started):
            return None
        return max(instant for instant in self.started if instant is not None)


class _Bound(NamedTuple):
    """Pods of one gang that were bound together."""

    execution: Execution
    ranks: list[int]
    pods: list[KubeObject]


class Kubelets:
    """Runs pods on all machines of one run."""

    def __init__(
        self,
        world: World,
        *,
        roster: Roster,
        machines: Sequence[Machine],
        node_names: Sequence[str],
        accounts: NodeAccounts,
        delays: Delays | None,
        resubmit: Callable[[Gang, Instant], None] | None,
        on_outcome: OutcomeListener,
        on_gang_over: GangListener,
        on_busy: Callable[[int, Instant], None],
    ) -> None:
        """`delays` is None when nothing is delayed; `resubmit` is None when evicted jobs fail."""
        self._store = store = world.store
        self._agenda = world.agenda
        self._journal = world.journal
        self._roster = roster
        self._machines = machines
        self._machine_of_node = {name: number for number, name in enumerate(node_names)}
        self._accounts = accounts
        self._delays = delays
        self._notes = world.notes
        self._resubmit = resubmit
        self._on_outcome = on_outcome
        self._on_gang_over = on_gang_over
        self._on_busy = on_busy
        #: The gangs of which a kubelet has heard and whose pods are not gone.
        self._executions: dict[Gang, Execution] = {}
        store.listen(POD, self._hear, author=self)

    # What schedulers and users did

    def _hear(self, batch: Batch, now: Instant) -> None:
        """Take note of what was done to pods."""
        if batch.type is ADDED:
            return
        admitted: list[_Bound] = []
        for gang, positions, ranks in self._roster.gangs(batch.keys):
            execution = self._execution(gang)
            if batch.type is DELETED:
                self._evict(execution, now)
                continue
            if execution.over:
                continue
            pods = [batch.objects[position] for position in positions]
            if told := [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]:
                self._terminate(execution, told, now)
            elif failed := [pod for pod in pods if pod["status"]["phase"] == "Failed"]:
                self._reject(execution, failed[0]["status"], now)
            elif (bound := self._newly_bound(execution, ranks, pods)) and self._admit(bound, now):
                admitted.append(bound)
        if admitted:
            self._on_busy(self._accounts.busy_nodes, now)
            self._book_starts(admitted, now)

    def _newly_bound(self, execution: Execution, ranks: Sequence[int], pods: Sequence[KubeObject]) -> _Bound | None:
        known = execution.machine_ids
        new = [
            (rank, pod)
            for rank, pod in zip(ranks, pods, strict=True)
            if known[rank] is None and "nodeName" in pod["spec"]
        ]
        return _Bound(execution, [rank for rank, _ in new], [pod for _, pod in new]) if new else None

    def _execution(self, gang: Gang) -> Execution:
        execution = self._executions.get(gang)
        if execution is None:
            execution = self._executions[gang] = Execution(gang)
        return execution

    def _admit(self, bound: _Bound, now: Instant) -> bool:
        """Take the pods' resources from their nodes; seal the job's fate if they are not there."""
        execution = bound.execution
        gang = execution.gang
        nodes = [pod["spec"]["nodeName"] for pod in bound.pods]
        if unknown := [name for name in nodes if name not in self._machine_of_node]:
            self._notes.add(_NO_SUCH_NODE, example=f"job {gang.job.key} on {unknown[0]}")
            self._fail(execution, f"node {unknown[0]} does not exist", now)
            return False
        machine_ids = [self._machine_of_node[name] for name in nodes]
        lacking = self._accounts.take(machine_ids, gang.demand)
        if lacking is None:
            for rank, machine_id in zip(bound.ranks, machine_ids, strict=True):
                execution.machine_ids[rank] = machine_id
                execution.scheduled[rank] = now
            return True
        machine_id, resource = lacking
        reason = f"OutOf{resource}"
        note = FidelityNote("scheduler", f"bound a pod to a node without room for it ({reason})", Severity.VIOLATION)
        self._notes.add(note, example=f"job {gang.job.key} on {self._machines[machine_id].name}")
        self._fail(execution, reason, now)
        return False

    def _fail(self, execution: Execution, reason: str, now: Instant) -> None:
        """The job cannot be run where its scheduler wants it."""
        self._seal(execution)
        self._agenda.book(now, Rank.FINISH, lambda at: self._finish(execution, FinalState.FAILED, reason, at))

    def _reject(self, execution: Execution, status: KubeObject, now: Instant) -> None:
        """A scheduler said that the job will never run, or somebody else failed one of its pods."""
        reason = ": ".join(text for text in (status.get("reason"), status.get("message")) if text)
        state = FinalState.REJECTED if status.get("reason") == REJECTED_BY_SCHEDULER else FinalState.KILLED
        self._seal(execution)
        self._agenda.book(now, Rank.FINISH, lambda at: self._finish(execution, state, reason, at))

    def _terminate(self, execution: Execution, pods: Sequence[KubeObject], now: Instant) -> None:
        """Somebody asked for pods to end: the whole job stops within their grace period, and so does not end well.

        Its nodes are not free before.
        """
        stopped = now
        if self._delays is not None:
            deadlines = [instant_of(pod["metadata"]["deletionTimestamp"]) for pod in pods]
            stopped = max(self._delays.until_stopped(now, deadline) for deadline in deadlines)
        self._seal(execution)
        self._agenda.book(stopped, Rank.FINISH, lambda at: self._clear_evicted(execution, at))

    def _evict(self, execution: Execution, now: Instant) -> None:
        """Somebody deleted a pod: the whole job stops at once, and is queued again or fails.

        If its work had ended and only the report was on its way, the nodes are free now and the outcome stands.
        """
        self._release(execution, now)
        if execution.over:
            return
        self._seal(execution)
        self._agenda.book(now, Rank.FINISH, lambda at: self._clear_evicted(execution, at))

    def _clear_evicted(self, execution: Execution, now: Instant) -> None:
        if self._resubmit is None:
            execution.gang.evictions += 1
            self._finish(execution, FinalState.KILLED, PREEMPTED, now)
            return
        self._clear_away(execution, "Failed", PREEMPTED, now)
        self._resubmit(execution.gang, now)

    # The pods' own course

    def _book_starts(self, admitted: list[_Bound], now: Instant) -> None:
        """Book the moments at which the pods just bound will be running, one appointment per instant and gang."""
        for bound in admitted:
            if self._delays is None:
                self._agenda.book(now, Rank.START, functools.partial(self._start, bound.execution, bound.ranks))
                continue
            by_instant: dict[Instant, list[int]] = {}
            for rank, pod in zip(bound.ranks, bound.pods, strict=True):
                spec = pod["spec"]
                starts = self._delays.until_running(now, spec["nodeName"], spec["containers"][0])
                by_instant.setdefault(starts, []).append(rank)
            for instant, ranks in by_instant.items():
                self._agenda.book(instant, Rank.START, functools.partial(self._start, bound.execution, ranks))

    def _start(self, execution: Execution, ranks: list[int], now: Instant) -> None:
        """Containers come up; when the gang is complete its work begins."""
        if execution.over:
            return
        keys = execution.gang.keys
        for rank in ranks:
            execution.started[rank] = now
        execution.running += len(ranks)
        status = {"phase": "Running", "startTime": rfc3339(now)}
        self._store.set_status(POD, [keys[rank] for rank in ranks], status, now, author=self)
        if execution.running == len(keys):
            self._begin(execution, now)

    def _begin(self, execution: Execution, now: Instant) -> None:
        """All pods run: the profile begins, and its end is known."""
        job = execution.gang.job
        length, ret = course_on(job.profile, [self._machines[number] for number in execution.admitted])
        state = FinalState.FAILED if ret else FinalState.SUCCESS
        # Batsim lets a job succeed only when it needs strictly less than its walltime (do_delay_task).
        if job.walltime is not None and length >= job.walltime:
            length, state = job.walltime, FinalState.WALLTIME
        self._journal.append(now, "start", job=job.key)
        execution.finish_appointment = self._agenda.book(
            Instant(now + length), Rank.FINISH, functools.partial(self._work_ended, execution, state)
        )

    def _work_ended(self, execution: Execution, state: FinalState, now: Instant) -> None:
        """The work is over; its pods' terminal status follows once the last of them is reported."""
        execution.finish_appointment = None
        self._seal(execution)
        if self._delays is None:
            self._finish(execution, state, "", now)
            return
        reported = max(self._delays.until_reported(now) for _ in execution.gang.keys)
        self._agenda.book(reported, Rank.FINISH, lambda at: self._finish(execution, state, "", at, ended=now))

    def _seal(self, execution: Execution) -> None:
        """Make the job's fate final: nothing that is still booked for the gang will happen."""
        execution.over = True
        if execution.finish_appointment is not None:
            self._agenda.cancel(execution.finish_appointment)
            execution.finish_appointment = None

    # The end

    def _finish(
        self, execution: Execution, state: FinalState, reason: str, now: Instant, ended: Instant | None = None
    ) -> None:
        """End the pods, free their nodes, and say how the job ended."""
        gang = execution.gang
        started = execution.work_began
        finished = now if ended is None else ended
        self._journal.append(now, "finish", job=gang.job.key, state=state.value)
        self._clear_away(execution, "Succeeded" if state is FinalState.SUCCESS else "Failed", reason, now, finished)
        self._on_outcome(
            Outcome(
                job=gang.job,
                state=state,
                scheduled=execution.scheduled[-1],
                started=started,
                finished=finished if started is not None else None,
                machines=mask_of(execution.admitted),
                evictions=gang.evictions,
            )
        )

    def _clear_away(
        self, execution: Execution, phase: str, reason: str, now: Instant, finished: Instant | None = None
    ) -> None:
        """Write the pods' terminal status, give back their resources, then delete them, as with a TTL of zero."""
        gang = execution.gang
        status: KubeObject = {"phase": phase, "reason": reason} if reason else {"phase": phase}
        alive = self._store.existing(POD, gang.keys)
        self._store.set_status(POD, alive, status, now, author=self)
        self._on_gang_over(
            GangRecord(
                gang=gang,
                machine_ids=execution.machine_ids,
                scheduled=execution.scheduled,
                started=execution.started,
                finished=now if finished is None else finished,
                phase=phase,
                reason=reason,
            )
        )
        self._release(execution, now)
        self._roster.remove(gang)
        del self._executions[gang]
        self._store.delete(POD, alive, now, author=self)

    def _release(self, execution: Execution, now: Instant) -> None:
        """Give the gang's resources back to its nodes, once."""
        if execution.released:
            return
        execution.released = True
        self._accounts.give_back(execution.admitted, execution.gang.demand)
        self._on_busy(self._accounts.busy_nodes, now)
