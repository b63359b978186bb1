"""The kubelets of all simulated nodes: what happens to a pod once a scheduler has bound it.

    bound ─▶ admitted (or rejected: OutOf…) ─▶ Running ─▶ the gang's work ─▶ Succeeded / Failed ─▶ deleted

Kubelets hear of bindings, deletions and rejections through the store only, and answer through it. They never act inside
a commit: they book what follows on the agenda. All pods that change at one instant are written in one commit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from batkube.cluster.mapping import POD, REJECTED_BY_SCHEDULER, with_status
from batkube.cluster.outcomes import FinalState, Outcome, OutcomeListener, PodListener, PodRecord
from batkube.cluster.store import ADDED, DELETED, Change, KubeObject, Store, Write
from batkube.execution.gangs import Gang, Roster
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

_Place = tuple[Gang, int]


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
        on_pods_over: PodListener,
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
        self._on_pods_over = on_pods_over
        self._on_busy = on_busy
        #: True while the kubelets themselves write, so that they do not hear their own words.
        self._writing = False
        store.listen(POD, self._hear)

    def _write(self, writes: Sequence[Write], now: Instant) -> None:
        self._writing = True
        try:
            self._store.commit(POD, writes, now)
        finally:
            self._writing = False

    def _hear(self, changes: list[Change], now: Instant) -> None:
        """Take note of what schedulers and users did to pods."""
        if self._writing:
            return
        bound: list[_Place] = []
        find = self._roster.find
        for change in changes:
            if change.type is ADDED:
                continue
            place = find(change.key)
            if place is None:
                continue
            if change.type is DELETED:
                self._evict(place[0], now)
            elif change.object["status"]["phase"] == "Failed":
                if place[0].over:
                    continue
                self._seal(place[0])
                self._agenda.book(now, Rank.FINISH, self._rejection(place[0], change.object))
            elif "nodeName" in change.object["spec"] and self._admit(*place, change.object, now):
                bound.append(place)
        if bound:
            self._on_busy(self._accounts.busy_nodes, now)
            self._book_starts(bound, now)

    def _admit(self, gang: Gang, rank: int, pod: KubeObject, now: Instant) -> bool:
        """Take the pod's resources from its node; seal the job's fate if they are not there."""
        if gang.over:
            return False
        machine_id = self._machine_of_node[pod["spec"]["nodeName"]]
        lacking = self._accounts.take(machine_id, gang.demand)
        if lacking is None:
            gang.machine_ids[rank] = machine_id
            gang.scheduled[rank] = now
            return True
        reason = f"OutOf{lacking}"
        note = FidelityNote("scheduler", f"bound a pod to a node without room for it ({reason})", Severity.VIOLATION)
        self._notes.add(note, example=f"job {gang.job.key} on {self._machines[machine_id].name}")
        self._seal(gang)
        self._agenda.book(now, Rank.FINISH, lambda at: self._finish(gang, FinalState.FAILED, reason, at))
        return False

    def _book_starts(self, bound: list[_Place], now: Instant) -> None:
        """Book the moments at which the pods just bound will be running, one appointment per instant."""
        if self._delays is None:
            self._agenda.book(now, Rank.START, functools.partial(self._start, bound))
            return
        by_instant: dict[Instant, list[_Place]] = {}
        for gang, rank in bound:
            pod = self._pods[gang.keys[rank]].object
            image = pod["spec"]["containers"][0]["image"]
            starts = self._delays.until_running(now, pod["spec"]["nodeName"], image)
            by_instant.setdefault(starts, []).append((gang, rank))
        for instant, places in by_instant.items():
            self._agenda.book(instant, Rank.START, functools.partial(self._start, places))

    def _start(self, places: list[_Place], now: Instant) -> None:
        """Containers come up; gangs that are complete begin their work."""
        status = {"phase": "Running", "startTime": rfc3339(now)}
        pods = self._pods
        writes: list[Write] = []
        complete: list[Gang] = []
        for gang, rank in places:
            if gang.over:
                continue
            key = gang.keys[rank]
            writes.append((key, with_status(pods[key].object, status)))
            gang.started[rank] = now
            gang.running += 1
            if gang.running == gang.job.size:
                complete.append(gang)
        self._write(writes, now)
        for gang in complete:
            self._begin(gang, now)

    def _begin(self, gang: Gang, now: Instant) -> None:
        """All pods run: the profile begins, and its end is known."""
        job = gang.job
        machines = [self._machines[number] for number in gang.machine_ids if number is not None]
        length = duration_of(job.profile, machines)
        state = FinalState.FAILED if job.profile.ret else FinalState.SUCCESS
        # Batsim lets a job succeed only when it needs strictly less than its walltime (do_delay_task).
        if job.walltime is not None and length >= job.walltime:
            length, state = job.walltime, FinalState.WALLTIME
        self._journal.append(now, "start", job=job.key)
        gang.finish_appointment = self._agenda.book(
            Instant(now + length), Rank.FINISH, lambda at: self._work_ended(gang, state, at)
        )

    def _work_ended(self, gang: Gang, state: FinalState, now: Instant) -> None:
        """The work is over; its pods' terminal status follows once it is reported."""
        gang.finish_appointment = None
        if self._delays is None:
            self._seal(gang)
            self._finish(gang, state, "", now)
            return
        reported = max(self._delays.until_reported(now) for _ in gang.keys)
        self._seal(gang)
        self._agenda.book(reported, Rank.FINISH, lambda at: self._finish(gang, state, "", at, ended=now))

    def _seal(self, gang: Gang) -> None:
        """Make the job's fate final: nothing that is still booked for the gang will happen."""
        gang.over = True
        if gang.finish_appointment is not None:
            self._agenda.cancel(gang.finish_appointment)
            gang.finish_appointment = None

    def _rejection(self, gang: Gang, pod: KubeObject) -> Callable[[Instant], None]:
        reason = pod["status"].get("reason", "")
        state = FinalState.REJECTED if reason == REJECTED_BY_SCHEDULER else FinalState.KILLED
        return lambda at: self._finish(gang, state, reason, at)

    def _evict(self, gang: Gang, now: Instant) -> None:
        """Somebody deleted a pod of a live gang: the whole job stops at once, and is queued again or fails."""
        if gang.over:
            return
        self._seal(gang)
        self._release(gang, now)
        self._agenda.book(now, Rank.FINISH, lambda at: self._clear_evicted(gang, at))

    def _clear_evicted(self, gang: Gang, now: Instant) -> None:
        if self._resubmit is None:
            self._finish(gang, FinalState.KILLED, PREEMPTED, now)
            return
        self._journal.append(now, "evicted", job=gang.job.key)
        self._clear_away(gang, "Failed", PREEMPTED, now)
        self._resubmit(gang, now)

    def _finish(self, gang: Gang, state: FinalState, reason: str, now: Instant, ended: Instant | None = None) -> None:
        """Write the pods' terminal status, free their nodes, and say how the job ended."""
        job = gang.job
        finished = now if ended is None else ended
        started = max(gang.started) if gang.running == job.size else None  # type: ignore[type-var]
        machines = mask_of(number for number in gang.machine_ids if number is not None)
        outcome = Outcome(
            job=job,
            state=state,
            scheduled=gang.scheduled[-1],
            started=started,
            finished=finished if started is not None else None,
            machines=machines,
            evictions=gang.evictions,
        )
        self._journal.append(now, "finish", job=job.key, state=state.value)
        self._clear_away(gang, "Succeeded" if state is FinalState.SUCCESS else "Failed", reason, now, finished)
        self._on_outcome(outcome)

    def _clear_away(self, gang: Gang, phase: str, reason: str, now: Instant, finished: Instant | None = None) -> None:
        """End the pods of a gang: terminal status, resources back, then deletion, as with a TTL of zero."""
        status: KubeObject = {"phase": phase, "reason": reason} if reason else {"phase": phase}
        alive = [key for key in gang.keys if key in self._pods]
        self._write([(key, with_status(self._pods[key].object, status)) for key in alive], now)
        self._on_pods_over(
            [
                PodRecord(
                    name=key.name,
                    job=gang.job,
                    machine=gang.machine_ids[rank],
                    created=gang.created,
                    scheduled=gang.scheduled[rank],
                    started=gang.started[rank],
                    finished=now if finished is None else finished,
                    phase=phase,
                    reason=reason,
                )
                for rank, key in enumerate(gang.keys)
            ]
        )
        self._release(gang, now)
        self._roster.remove(gang)
        self._write([(key, None) for key in alive], now)

    def _release(self, gang: Gang, now: Instant) -> None:
        """Give the gang's resources back to its nodes, once."""
        if gang.released:
            return
        gang.released = True
        for machine_id in gang.machine_ids:
            if machine_id is not None:
                self._accounts.give_back(machine_id, gang.demand)
        self._on_busy(self._accounts.busy_nodes, now)
