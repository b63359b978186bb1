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

from collections.abc import Sequence
from typing import Protocol

from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration, Instant, as_float_s
from batkube.kernel.stopwatch import Stopwatch
from batkube.timing.costs import DecisionCost
from batkube.timing.pages.garbage_collection import GarbageCollection
from batkube.timing.processes.attached_process import AttachedProcess
from batkube.timing.timeouts import WATCHDOG

#: How long to wait for an idle report before probing again, at first and at most: one can get lost (a thread that spins
#: at the wrong moment), but a program that works for long is not asked all the time. Each time we also accept and read,
#: without answering.
_MIN_PROBE_INTERVAL_S, _MAX_PROBE_INTERVAL_S = 0.002, 0.008
#: How long a grant lasts beyond the first timer. A program that jumps from timer to timer does not say how much garbage
#: it leaves, and does not collect any.
_GRANT_DURATION = Duration(60 * NANOSECONDS_PER_SECOND)
#: A Go program takes up its clock before anything else; one that has not after so long was not built for it.
_ATTACH_TIMEOUT_S = 5.0
#: For how long the counts of both sides may differ before the kernel is asked whether anything is in flight.
_IN_FLIGHT_TIMEOUT_S = 0.05


class Acceptor(Protocol):
    """Where a program connects; others are turned away (`api.connections.program_listener`)."""

    @property
    def accepted(self) -> int:
        """How many connections of the program were accepted since the run began."""

    @property
    def rejected(self) -> int:
        """How many connections of other processes were refused since the run began."""

    @property
    def closed_unidentified(self) -> int:
        """How many connections were closed in silence before it was known whose they were."""

    @property
    def can_identify_program(self) -> bool:
        """Whether strangers can be told from the program; if not, everybody is let in."""


class Server(Protocol):
    """What a program talks to: a server that reads and writes only when told (`api.polling`)."""

    @property
    def listener(self) -> Acceptor:
        """Where connections come in, and whose they are."""

    @property
    def has_bytes_in_flight(self) -> bool:
        """Whether anything is on its way between the program and the server, as the kernel sees it."""

    @property
    def unread_bytes(self) -> int:
        """How many bytes have arrived at the program that it has not read, as the kernel sees it."""

    @property
    def dropped_connections(self) -> int:
        """How many connections have ended since the start; a change of it tells of one that broke."""

    @property
    def received(self) -> int:
        """How many bytes have come in since the start: the sign of a program that is still talking."""

    @property
    def sent(self) -> int:
        """How many bytes have gone out since the start: the sign that the program was answered."""

    @property
    def has_pending_requests(self) -> bool:
        """Whether anything was read that is not answered."""

    @property
    def pending_pod_writes(self) -> int:
        """How many of the requests read and not answered would change a single pod."""

    @property
    def overflows(self) -> int:
        """How many pieces did not fit into a receive window, and so arrived in part at a real moment."""

    def retract_unsent(self) -> None:
        """Announce no more of the latest piece than the kernel has sent."""

    def read_ready(self, wait_s: float = 0.0) -> bool:
        """Read what has come, waiting at most `wait_s`; return whether anything of the program's had."""

    def answer_requests(self) -> None:
        """Answer what was read."""

    def send_next(self) -> bool:
        """Send what is due on the first connection that has anything; return whether one had."""

    def close(self) -> None:
        """Drop every connection and stop listening."""


class Attachment:
    """A program and the server it talks to."""

    def __init__(
        self, process: AttachedProcess, server: Server, cost: DecisionCost | None = None, watchdog: Duration = WATCHDOG
    ) -> None:
        """`cost` is None when decisions take no time; `watchdog` is how long it may take, in real time, to be idle."""
        self.process = process
        self.page = process.page
        self.server = server
        #: Until when the program is busy with what it has written already; None when it is not.
        self.busy_until: Instant | None = None
        self._cost = cost
        self._garbage = GarbageCollection(process.page)
        self._watchdog_s = as_float_s(watchdog)
        #: Whether the counters have been found to tell the truth; not so once the program talks to others, too.
        self._counters_agree = True
        #: What the program knew when it was last seen idle; as long as it learns nothing else, it stays so.
        self._idle_inputs: tuple[int, int, int] | None = None

    def is_busy(self, now: Instant) -> bool:
        """Return whether the program is busy beyond `now`, and so hears and does nothing."""
        return self.busy_until is not None and self.busy_until > now

    def wait_idle(self) -> None:
        """Wait until the program is idle and has read everything that was sent; then it may collect its garbage."""
        if self._idle_inputs == self._inputs():
            return
        self._await_idle_report()
        if self._garbage.is_due():
            self.page.request_collection()
            self._await_idle_report()
        self._idle_inputs = self._inputs()

    def _await_idle_report(self) -> None:
        """Wait for the answer to a question that was put when the program had read everything.

        An earlier answer will not do. On a busy machine bytes may arrive after the program has said that it is idle,
        and have been read a moment later: it is at work then, though it has answered and both sides count the same.
        """
        watch, patience_s = Stopwatch(), _MIN_PROBE_INTERVAL_S
        number = self._probe_when_read(watch)
        while number is None or not self.page.is_idle_since(number):
            if self.page.wait(patience_s):
                number = number or self._probe_when_read(watch)
            else:
                patience_s = min(2 * patience_s, _MAX_PROBE_INTERVAL_S)
                self._check_health(watch.real_s)
                # A program that connects, or writes more than the kernel holds, goes on when we accept and read.
                self.server.read_ready()
                self.server.retract_unsent()
                number = self._probe_when_read(watch)
        # A Go program that has ended answers nothing. For the others the kernel does, to whom the dead are asleep.
        self._check_alive()

    def _probe_when_read(self, watch: Stopwatch) -> int | None:
        """Ask the program whether it is idle, unless it has something to read, which wakes it anyway."""
        return self.page.probe() if self._has_read_all(watch) else None

    def _inputs(self) -> tuple[int, int, int]:
        """Return all that can wake the program: its clock, and what it was sent."""
        return self.page.now, self.server.sent, self.server.dropped_connections

    def grant(self, limit_ns: int) -> None:
        """Let the program jump from timer to timer before `limit_ns` until it writes something, and wait for it."""
        self._idle_inputs = None
        self.page.grant(limit_ns)
        self.wait_idle()
        self.page.revoke()

    def _check_alive(self) -> None:
        if self.process.has_ended:
            raise self.process.exit_failure()

    def _check_health(self, waited_s: float) -> None:
        self._check_alive()
        process = self.process
        if waited_s > self._watchdog_s:
            raise process.failure(f"has not become idle for {self._watchdog_s:g} s of real time")
        if self.page.pid == 0 and waited_s > _ATTACH_TIMEOUT_S:
            raise process.failure(f"does not read the virtual clock; {self.page.remedy}")

    def _has_read_all(self, watch: Stopwatch) -> bool:
        if self.page.reports_arrivals or not self._counters_agree or self.page.bytes_read >= self.server.sent:
            return True
        # Nobody need be waiting for what has arrived: a thread may have asked for something else meanwhile.
        if not self.page.counts_all and self.page.bytes_read + self.server.unread_bytes >= self.server.sent:
            return True
        self._check_counters(watch)
        return False

    def _check_counters(self, watch: Stopwatch) -> None:
        """Believe the counters no longer when they do not meet after a while, though nothing is on its way."""
        if watch.real_s > _IN_FLIGHT_TIMEOUT_S:
            self._check_health(watch.real_s)
            self._counters_agree = self.server.has_bytes_in_flight
            if not self._counters_agree:
                self.page.distrust_counters()

    @property
    def rounds_to_settle(self) -> int:
        """How many quiet rounds in a row it takes to be sure."""
        return 1 if self._counters_agree else 2

    @property
    def is_repeatable(self) -> bool:
        """Whether nothing happened that may differ in another run.

        That would be: bytes that crossed the program's connections without being counted, or at a moment of their own;
        a garbage collection that depended on some kilobytes.
        """
        # Programs that do not count everything are known to be idle from the kernel.
        is_counted = not self.page.counts_all or (self._counters_agree and not self._writes_uncounted())
        return is_counted and not self.server.overflows and not self._garbage.was_marginal

    def receive(self, now: Instant) -> bool:
        """Read and answer everything the program wrote; return whether there was anything.

        When that cost the program time, the answer waits until it has passed.
        """
        if self.busy_until is None:
            if not self._collect():
                return False
            cost = 0 if self._cost is None else self._cost.of(self.server.pending_pod_writes)
            if cost > 0:
                self.busy_until = Instant(now + cost)
                return False
        self.busy_until = None
        self.server.answer_requests()
        return True

    def _collect(self) -> bool:
        """Read everything the program wrote; return whether it waits for answers."""
        watch = Stopwatch()
        while not (self._counters_agree and self.page.counts_all and self._has_received_all()):
            came = self.server.read_ready()
            if not self._counters_agree:
                if not came:
                    break
            elif self._has_received_all() and not came:
                break
            elif not came:
                self.server.read_ready(wait_s=0.001)
                self._check_counters(watch)
        if self._counters_agree and self._writes_uncounted():
            self._counters_agree = False
        return self.server.has_pending_requests

    def _writes_uncounted(self) -> bool:
        """Return whether the idle program has sent more than it has counted, as with sendfile(2) or splice(2)."""
        return self.page.counts_all and self.server.received > self.page.bytes_written

    def _has_received_all(self) -> bool:
        listener, page = self.server.listener, self.page
        return (
            self.server.received >= page.bytes_written
            and listener.accepted + listener.closed_unidentified >= page.connect_count
        )


class Coordinator:
    """Moves the clocks of all attached programs together."""

    def __init__(self, attachments: Sequence[Attachment], epoch_ns: int) -> None:
        self._attachments = attachments
        #: The Unix time of the run's zero.
        self._epoch_ns = epoch_ns

    def settle(self, now: Instant) -> None:
        """Let everybody who is not busy act until everybody is idle."""
        quiet = 0
        while present := [attachment for attachment in self._attachments if not attachment.is_busy(now)]:
            for attachment in present:
                attachment.wait_idle()
            if any([attachment.receive(now) for attachment in present]) or _send_next(present, now):
                quiet = 0
                continue
            quiet += 1
            if quiet >= max(attachment.rounds_to_settle for attachment in present):
                return

    def advance(self, now: Instant, horizon: Instant) -> Instant:
        """Let time go on until a program writes something, at most to `horizon`; return the instant reached."""
        busy = [one.busy_until for one in self._attachments if one.busy_until is not None]
        horizon = min([horizon, *busy])
        free = [one for one in self._attachments if one.busy_until is None]
        before = [one.page.write_count for one in free]
        while True:
            nexts = sorted((max(self._next_timer(one), now), number) for number, one in enumerate(free))
            if not nexts or nexts[0][0] >= horizon:
                return self._move(horizon)
            (first, number), others = nexts[0], [time for time, _ in nexts[1:]]
            limit = Instant(min([horizon, first + _GRANT_DURATION, *others]))
            # A late wake-up may have the program at work already, since the clock was moved to its timer.
            # What it writes before it is granted time would not end the grant: it would go on without an answer.
            free[number].wait_idle()
            if [one.page.write_count for one in free] == before:
                now = self._grant(free[number], now, limit)
            if [one.page.write_count for one in free] != before:
                return now

    def next_instant(self, now: Instant) -> Instant | None:
        """Return when a program has something to do next by itself; None without programs."""
        busy = [one.busy_until for one in self._attachments if one.busy_until is not None]
        timers = [self._next_timer(one) for one in self._attachments if one.busy_until is None]
        return max(now, min([*busy, *timers])) if self._attachments else None

    def _next_timer(self, attachment: Attachment) -> Instant:
        return Instant(attachment.page.next_timer - self._epoch_ns)

    def _grant(self, attachment: Attachment, now: Instant, limit: Instant) -> Instant:
        """Let one program jump from timer to timer before `limit`, until it writes something; return where it is.

        A timer that is due exactly at the limit is reached by moving everybody there.
        """
        page = attachment.page
        before = page.write_count
        attachment.grant(limit + self._epoch_ns)
        now = self._move(Instant(max(page.now - self._epoch_ns, now)))
        if page.write_count == before and self._next_timer(attachment) >= limit:
            now = self._move(limit)
            attachment.wait_idle()
        return now

    def _move(self, to: Instant) -> Instant:
        for attachment in self._attachments:
            attachment.page.now = to + self._epoch_ns
        return to

    def stop(self) -> None:
        """End every program."""
        for attachment in self._attachments:
            attachment.process.stop()
            attachment.server.close()


def _send_next(attachments: Sequence[Attachment], now: Instant) -> bool:
    return any(one.server.send_next() for one in attachments if not one.is_busy(now))
