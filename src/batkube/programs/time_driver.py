"""Time driver of runs with external programs: time advances only while all programs are idle."""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.world import World
from batkube.kernel.instants import Duration, Instant
from batkube.programs.observation.decision_log import DecisionLogReader
from batkube.programs.observation.failed_attempts import AttemptLog
from batkube.programs.observation.observer import ProgramObserver
from batkube.timing.coordinator import Attachment, Coordinator
from batkube.timing.loop import ExternalHorizon


class CoordinatedTimeDriver:
    """Advances time to the next appointment or timer whenever all programs are idle."""

    def __init__(
        self,
        world: World,
        attachments: Sequence[Attachment],
        observer: ProgramObserver,
        patience: Duration,
        epoch_ns: int,
        horizon: ExternalHorizon | None = None,
    ) -> None:
        """End the run after `patience` of virtual time without any change or due appointment."""
        self.attachments = attachments
        self._agenda = world.agenda
        self._clock = world.clock
        self._coordinator = Coordinator(attachments, epoch_ns)
        self._observer = observer
        self._patience = patience
        self._horizon = horizon
        logs = [attachment.process.log for attachment in attachments]
        self._logs: list[AttemptLog | DecisionLogReader] = [AttemptLog(log, observer.record_attempt) for log in logs]
        if world.reasons.is_recorded:
            self._logs += [DecisionLogReader(log, world.reasons) for log in logs]
        #: The number of changes at the last activity, and its time. A program that only polls changes nothing.
        self._activity, self._active_at = observer.activity, world.clock.now

    def advance(self) -> Instant | None:
        """Wait until all programs are idle, then advance to the next appointment, timer or event of the horizon."""
        now = self._clock.now
        self._coordinator.settle(now)
        self._read_logs(now)
        if self._observer.activity != self._activity:
            self._activity, self._active_at = self._observer.activity, now
        due, end = self._agenda.due, Instant(self._active_at + self._patience)
        if due is not None and due <= now:
            return now
        if len(self._agenda) == 0 and not (self._horizon is not None and self._horizon.expects_events):
            # Nothing is due, except for routine appointments.
            if now >= end:
                return None
            due = end if due is None else min(due, end)
        if self._horizon is not None:
            due = self._horizon.advance_limit(now, self._next_wakeup(due, now))
        assert due is not None, "a non-empty agenda has a next appointment"
        reached = self._coordinator.advance(now, due)
        self._read_logs(reached)
        return reached

    def _next_wakeup(self, due: Instant | None, now: Instant) -> Instant | None:
        """Return the earlier of the next appointment and the next timer of a program."""
        wakeup = self._coordinator.next_instant(now)
        return min((instant for instant in (due, wakeup) if instant is not None), default=None)

    def columns(self) -> dict[str, str | int]:
        """Return no columns: the results do not depend on this driver."""
        return {}

    def _read_logs(self, now: Instant) -> None:
        """Process what the programs have logged up to `now`."""
        for log in self._logs:
            log.read(now)

    def stop(self) -> None:
        """Stop every program, and note what may have affected the fidelity of the run."""
        for attachment in self.attachments:
            attachment.server.read_ready()
            name, page, listener = attachment.process.name, attachment.page, attachment.server.listener
            foreign_connects = page.foreign_connections + max(
                0, page.connect_count - listener.accepted - listener.closed_unidentified
            )
            self._observer.note_real_time_use(name, page.unsupported_features)
            self._observer.note_foreign_connections(name, foreign_connects, page.foreign_bytes)
            if not attachment.is_repeatable:
                self._observer.note_nondeterminism(name)
            self._observer.note_intruders(name, page.connect_count, listener)
        self._coordinator.stop()
        for attachment in self.attachments:
            self._observer.note_end(attachment.process)
