"""The kubelets of all simulated nodes: what happens to a pod once a scheduler has bound it.

    bound ─▶ admitted (or rejected: OutOf…) ─▶ Running ─▶ the gang's work ─▶ Succeeded / Failed ─▶ deleted

Kubelets hear of bindings, deletions and rejections through the store only, and answer through it. They never act inside
a commit: they book what follows on the agenda. All pods that change at one instant are written in one commit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from batkube.cluster.gangs import Gang, Roster
from batkube.cluster.mapping import POD, REJECTED_BY_SCHEDULER
from batkube.cluster.outcomes import FinalState, GangListener, GangRecord, Outcome, OutcomeListener
from batkube.cluster.store import ADDED, DELETED, Change, KubeObject, Store, Write
from batkube.execution.latencies import Delays
from batkube.execution.nodes import NodeAccounts
from batkube.execution.profiles import duration_of
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.fidelity import FidelityNote, FidelityNotes, Severity
from batkube.kernel.instants import Instant, rfc3339
from batkube.kernel.intervals import mask_of
from batkube.kernel.journal import Journal
from batkube.platforms.model import Machine

PREEMPTED = "Preempted"


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
    def work_began(self) -> Instant | None:
        """When the last pod came up; None while some have not."""
        if self.running < len(self.started):
            return None
        return max(instant for instant in self.started if instant is not None)


_Place = tuple[Execution, int]


class Kubelets:
    """Runs pods on all machines of one run."""

    def __init__(
        self,
        *,
        store: Store,
        agenda: Agenda,
        journal: Journal,
        roster: Roster,
        machines: Sequence[Machine],
        node_names: Sequence[str],
        accounts: NodeAccounts,
        delays: Delays | None,
        notes: FidelityNotes,
        resubmit: Callable[[Gang, Instant], None] | None,
        on_outcome: OutcomeListener,
        on_gang_over: GangListener,
        on_busy: Callable[[int, Instant], None],
    ) -> None:
        """`delays` is None when nothing is delayed; `resubmit` is None when evicted jobs fail."""
        self._store = store
        self._pods = store.live(POD)
        self._agenda = agenda
        self._journal = journal
        self._roster = roster
        self._machines = machines
        self._machine_of_node = {name: number for number, name in enumerate(node_names)}
        self._accounts = accounts
        self._delays = delays
        self._notes = notes
        self._resubmit = resubmit
        self._on_outcome = on_outcome
        self._on_gang_over = on_gang_over
        self._on_busy = on_busy
        #: The gangs of which a kubelet has heard and whose pods are not gone.
        self._executions: dict[Gang, Execution] = {}
        #: True while the kubelets themselves write, so that they do not hear their own words.
        self._writing = False
        store.listen(POD, self._hear)

    def _write(self, writes: Sequence[Write], now: Instant) -> None:
        self._writing = True
        try:
            self._store.commit(POD, writes, now)
        finally:
            self._writing = False

    # What schedulers and users did

    def _hear(self, changes: list[Change], now: Instant) -> None:
        if self._writing:
            return
        bound: list[_Place] = []
        execution: Execution | None = None
        find = self._roster.find
        for change in changes:
            if change.type is ADDED:
                continue
            place = find(change.key)
            if place is None:
                continue
            gang, rank = place
            if execution is None or execution.gang is not gang:
                execution = self._execution(gang)
            if execution.over:
                continue
            pod = change.object
            if change.type is DELETED:
                self._evict(execution, now)
            elif pod["status"]["phase"] == "Failed":
                self._reject(execution, pod["status"].get("reason", ""), now)
            elif "nodeName" in pod["spec"] and self._admit(execution, rank, pod["spec"]["nodeName"], now):
                bound.append((execution, rank))
        if bound:
            self._on_busy(self._accounts.busy_nodes, now)
            self._book_starts(bound, now)

    def _execution(self, gang: Gang) -> Execution:
        execution = self._executions.get(gang)
        if execution is None:
            execution = self._executions[gang] = Execution(gang)
        return execution

    def _admit(self, execution: Execution, rank: int, node: str, now: Instant) -> bool:
        """Take the pod's resources from its node; seal the job's fate if they are not there."""
        gang = execution.gang
        machine_id = self._machine_of_node[node]
        lacking = self._accounts.take(machine_id, gang.demand)
        if lacking is None:
            execution.machine_ids[rank] = machine_id
            execution.scheduled[rank] = now
            return True
        reason = f"OutOf{lacking}"
        note = FidelityNote("scheduler", f"bound a pod to a node without room for it ({reason})", Severity.VIOLATION)
        self._notes.add(note, example=f"job {gang.job.key} on {node}")
        self._seal(execution)
        self._agenda.book(now, Rank.FINISH, lambda at: self._finish(execution, FinalState.FAILED, reason, at))
        return False

    def _reject(self, execution: Execution, reason: str, now: Instant) -> None:
        """A scheduler said that the job will never run, or somebody else failed one of its pods."""
        state = FinalState.REJECTED if reason == REJECTED_BY_SCHEDULER else FinalState.KILLED
        self._seal(execution)
        self._agenda.book(now, Rank.FINISH, lambda at: self._finish(execution, state, reason, at))

    def _evict(self, execution: Execution, now: Instant) -> None:
        """Somebody deleted a pod: the whole job stops at once, and is queued again or fails."""
        self._seal(execution)
        self._release(execution, now)
        self._agenda.book(now, Rank.FINISH, lambda at: self._clear_evicted(execution, at))

    def _clear_evicted(self, execution: Execution, now: Instant) -> None:
        if self._resubmit is None:
            self._finish(execution, FinalState.KILLED, PREEMPTED, now)
            return
        self._clear_away(execution, "Failed", PREEMPTED, now)
        self._resubmit(execution.gang, now)

    # The pods' own course

    def _book_starts(self, bound: list[_Place], now: Instant) -> None:
        """Book the moments at which the pods just bound will be running, one appointment per instant."""
        if self._delays is None:
            self._agenda.book(now, Rank.START, functools.partial(self._start, bound))
            return
        by_instant: dict[Instant, list[_Place]] = {}
        for execution, rank in bound:
            spec = self._pods[execution.gang.keys[rank]].object["spec"]
            starts = self._delays.until_running(now, spec["nodeName"], spec["containers"][0]["image"])
            by_instant.setdefault(starts, []).append((execution, rank))
        for instant, places in by_instant.items():
            self._agenda.book(instant, Rank.START, functools.partial(self._start, places))

    def _start(self, places: list[_Place], now: Instant) -> None:
        """Containers come up; gangs that are complete begin their work."""
        status = {"phase": "Running", "startTime": rfc3339(now)}
        pods = self._pods
        writes: list[Write] = []
        complete: list[Execution] = []
        for execution, rank in places:
            if execution.over:
                continue
            key = execution.gang.keys[rank]
            writes.append((key, {**pods[key].object, "status": status}))
            execution.started[rank] = now
            execution.running += 1
            if execution.running == len(execution.started):
                complete.append(execution)
        self._write(writes, now)
        for execution in complete:
            self._begin(execution, now)

    def _begin(self, execution: Execution, now: Instant) -> None:
        """All pods run: the profile begins, and its end is known."""
        job = execution.gang.job
        length = duration_of(
            job.profile, [self._machines[number] for number in execution.machine_ids if number is not None]
        )
        state = FinalState.FAILED if job.profile.ret else FinalState.SUCCESS
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
                machines=mask_of(number for number in execution.machine_ids if number is not None),
                evictions=gang.evictions,
            )
        )

    def _clear_away(
        self, execution: Execution, phase: str, reason: str, now: Instant, finished: Instant | None = None
    ) -> None:
        """Write the pods' terminal status, give back their resources, then delete them, as with a TTL of zero."""
        gang = execution.gang
        status: KubeObject = {"phase": phase, "reason": reason} if reason else {"phase": phase}
        pods = self._pods
        alive = [key for key in gang.keys if key in pods]
        self._write([(key, {**pods[key].object, "status": status}) for key in alive], now)
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
        self._write([(key, None) for key in alive], now)

    def _release(self, execution: Execution, now: Instant) -> None:
        """Give the gang's resources back to its nodes, once."""
        if execution.released:
            return
        execution.released = True
        demand = execution.gang.demand
        for machine_id in execution.machine_ids:
            if machine_id is not None:
                self._accounts.give_back(machine_id, demand)
        self._on_busy(self._accounts.busy_nodes, now)
