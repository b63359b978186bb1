"""The coordinator: settles everybody, then lets time go on.

    settle ─▶ the next thing due, here or in a program ─▶ advance ─▶ let it happen ─▶ settle …

Settled means: every program is idle and has read everything sent to it, everything it wrote has been received and
answered, and nothing is left to send. Only then may time move, so no decision is lost and none comes late. Counters on
both sides make this certain (see `page`); a program that talks to others as well makes them useless, and then two quiet
rounds in a row must do.

While nothing is due here, a program may be granted time: its runtime jumps from timer to timer by itself until it
writes something or the grant ends. So idle hours cost almost nothing, and still nothing happens at another instant than
it should.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from batkube.kernel.agenda import Agenda
from batkube.kernel.clock import Clock
from batkube.kernel.errors import RunFailed
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, human
from batkube.kernel.stopwatch import Stopwatch
from batkube.timing.processes import AttachedProcess

#: In virtual time: when nothing is due and nothing happens for so long, a run is given up.
PATIENCE = Duration(3600 * NANOSECONDS_PER_SECOND)
#: How long to wait for an idle report before probing again: one can get lost (a thread that spins at the wrong moment).
_PATIENCE_S = 0.002
#: A program that does not become idle for so long, in real time, is stuck.
_WATCHDOG_S = 120.0
#: For how long bytes may be on their way over the loopback before the counters are not believed.
_TRANSIT_S = 0.05
#: After so many rounds a program collects its garbage.
_ROUNDS_PER_COLLECTION = 4000


class Server(Protocol):
    """What a program talks to: a server that reads and writes only when told (`api.polling`)."""

    @property
    def accepted(self) -> int:
        """Connections accepted, ever."""

    @property
    def received(self) -> int:
        """Bytes received, ever."""

    @property
    def sent(self) -> int:
        """Bytes sent, ever."""

    def receive(self, wait_s: float = 0.0) -> bool:
        """Read and answer what has come; return whether anything had."""

    def send_one(self) -> bool:
        """Send what is due on the first connection that has anything; return whether one had."""

    def close(self) -> None:
        """Drop every connection and stop listening."""


class Attachment:
    """A program and the server it talks to."""

    def __init__(self, process: AttachedProcess, server: Server) -> None:
        self.process = process
        self.page = process.page
        self.server = server
        #: Whether the counters have been found to tell the truth; not so once the program talks to others, too.
        self._counts = True
        self._rounds = 0

    def wait_idle(self) -> None:
        """Wait until the program is idle and has read everything that was sent."""
        self._rounds += 1
        if self._rounds % _ROUNDS_PER_COLLECTION == 0:
            self.page.request_collection()
        watch = Stopwatch()
        number = self.page.probe()
        while not self.page.is_idle_since(number) or not self._has_read_all(watch):
            if not self.page.wait(_PATIENCE_S):
                if self.process.has_ended:
                    raise self.process.ended()
                if watch.real_s > _WATCHDOG_S:
                    raise self.process.failure(f"has not become idle for {_WATCHDOG_S:g} s of real time")
                number = self.page.probe()

    def _has_read_all(self, watch: Stopwatch) -> bool:
        if not self._counts or self.page.bytes_read >= self.server.sent:
            return True
        if watch.real_s > _TRANSIT_S:
            self._counts = False
        return False

    @property
    def rounds_to_settle(self) -> int:
        """How many quiet rounds in a row it takes to be sure."""
        return 1 if self._counts else 2

    def receive(self) -> bool:
        """Read and answer everything the program wrote; return whether there was anything."""
        if self._counts and self._has_received_all():
            return False
        before = self.server.received, self.server.accepted
        watch = Stopwatch()
        while True:
            came = self.server.receive()
            if not self._counts:
                if not came:
                    break
            elif self._has_received_all():
                break
            elif not came:
                self.server.receive(wait_s=0.001)
                if watch.real_s > _TRANSIT_S:
                    self._counts = False
        return (self.server.received, self.server.accepted) != before

    def _has_received_all(self) -> bool:
        server, page = self.server, self.page
        return server.received >= page.bytes_written and server.accepted >= page.connects


class Coordinator:
    """Moves one clock for everybody."""

    def __init__(self, clock: Clock, agenda: Agenda, attachments: Sequence[Attachment], epoch_ns: int) -> None:
        self._clock = clock
        self._agenda = agenda
        self._attachments = attachments
        #: The Unix time of the clock's zero.
        self._epoch_ns = epoch_ns

    def settle(self) -> None:
        """Let everybody act until everybody is idle."""
        quiet = 0
        while quiet < max(attachment.rounds_to_settle for attachment in self._attachments):
            for attachment in self._attachments:
                attachment.wait_idle()
            if any([attachment.receive() for attachment in self._attachments]) or self._send_one():
                quiet = 0
            else:
                quiet += 1

    def _send_one(self) -> bool:
        return any(attachment.server.send_one() for attachment in self._attachments)

    def advance(self, horizon: Instant) -> Instant:
        """Let time go on until a program writes something, at most to `horizon`; return the instant reached."""
        while True:
            nexts = sorted((self._next_timer(one), number) for number, one in enumerate(self._attachments))
            if not nexts or nexts[0][0] >= horizon:
                return self._move(horizon)
            (_, number), limit = nexts[0], min([horizon, *(time for time, _ in nexts[1:])])
            if self._granted(self._attachments[number], limit):
                return self._clock.now

    def _next_timer(self, attachment: Attachment) -> Instant:
        return Instant(max(attachment.page.next_timer - self._epoch_ns, self._clock.now))

    def _granted(self, attachment: Attachment, limit: Instant) -> bool:
        """Let one program jump from timer to timer before `limit`; return whether it has written something.

        A timer that is due exactly at the limit is reached by moving everybody there.
        """
        page = attachment.page
        wrote = page.wrote
        page.grant(limit + self._epoch_ns)
        attachment.wait_idle()
        page.revoke()
        self._move(Instant(max(page.now - self._epoch_ns, self._clock.now)))
        if page.wrote != wrote:
            return True
        if self._next_timer(attachment) >= limit:
            self._move(limit)
            attachment.wait_idle()
            return page.wrote != wrote
        return False

    def _move(self, to: Instant) -> Instant:
        self._clock.advance(to)
        for attachment in self._attachments:
            attachment.page.now = to + self._epoch_ns
        return to

    def stop(self) -> None:
        """End every program."""
        for attachment in self._attachments:
            attachment.process.stop()
            attachment.server.close()


def run_coordinated(
    coordinator: Coordinator,
    agenda: Agenda,
    clock: Clock,
    is_done: Callable[[], bool],
    activity: Callable[[], int],
    patience: int,
    progress: Callable[[Instant], None],
) -> None:
    """Run until `is_done`, or until nothing is due and no program did anything for `patience` of virtual time.

    `activity` counts what has changed in the cluster; a program that only keeps itself busy does not count.
    """
    seen, since = activity(), clock.now
    while not is_done():
        coordinator.settle()
        if activity() != seen:
            seen, since = activity(), clock.now
        due = agenda.due
        if due is not None and due <= clock.now:
            _keep_due(agenda, clock)
            continue
        end = Instant(since + patience)
        if due is None and clock.now >= end:
            raise RunFailed(f"nothing was due any more, and nothing happened for {human(patience)} of virtual time")
        reached = coordinator.advance(end if due is None else due)
        if reached == due:
            _keep_due(agenda, clock)
        progress(reached)


def _keep_due(agenda: Agenda, clock: Clock) -> None:
    """Keep every appointment of this instant, those booked meanwhile included."""
    while agenda.due is not None and agenda.due <= clock.now:
        appointment = agenda.next()
        assert appointment is not None
        clock.advance(appointment.at)
        appointment.action(appointment.at)
