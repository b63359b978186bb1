"""The coordinator: waits until all attached programs have settled, then advances the virtual clock.

    settle ─▶ next event, here or in a program ─▶ advance ─▶ execute ─▶ settle …

Settled means that every program is idle and has read everything sent to it, everything it wrote has been received and
answered, and nothing is left to send. Time moves only then, so no decision is lost or late. Byte and connection
counters on both sides prove it (`pages.clock_page`). A program that also communicates with other processes makes the
counters useless; then two quiet rounds in a row are required instead.

While no event is due here, a program may get a time grant: its runtime jumps from timer to timer by itself until it
writes something or the grant ends. Idle hours therefore cost almost nothing, and all events keep their exact instants.
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

#: The initial and maximum wait for an idle report before probing again. A report can get lost (a thread that spins at
#: the wrong moment), but a program that works for long should not be probed all the time. Before each probe we also
#: accept connections and read, without answering.
_MIN_PROBE_INTERVAL_S, _MAX_PROBE_INTERVAL_S = 0.002, 0.008
#: How long a grant lasts beyond the first timer. During a grant a program neither reports nor collects its garbage.
_GRANT_DURATION = Duration(60 * NANOSECONDS_PER_SECOND)
#: A Go program opens its clock page first of all. One that has not done so by then was not built for virtual time.
_ATTACH_TIMEOUT_S = 5.0
#: How long the counters of both sides may differ before we ask the kernel whether bytes are in flight.
_IN_FLIGHT_TIMEOUT_S = 0.05


class Acceptor(Protocol):
    """Accepts the connections of a program and rejects all others (`api.connections.program_listener`)."""

    @property
    def accepted(self) -> int:
        """How many connections of the program were accepted since the run began."""

    @property
    def rejected(self) -> int:
        """How many connections of other processes were refused since the run began."""

    @property
    def closed_unidentified(self) -> int:
        """How many connections were closed without data before their process was identified."""

    @property
    def can_identify_program(self) -> bool:
        """Whether the process of a connection can be identified; if not, all connections are accepted."""


class Server(Protocol):
    """The API server as the coordinator sees it: it reads and writes only when called (`api.connections`)."""

    @property
    def listener(self) -> Acceptor:
        """The acceptor of the program's connections."""

    @property
    def has_bytes_in_flight(self) -> bool:
        """Whether bytes are in flight between the program and the server, according to the kernel."""

    @property
    def unread_bytes(self) -> int:
        """How many bytes have arrived at the program and have not been read, according to the kernel."""

    @property
    def dropped_connections(self) -> int:
        """How many connections have ended since the start."""

    @property
    def received(self) -> int:
        """How many bytes were received since the start."""

    @property
    def sent(self) -> int:
        """How many bytes were sent since the start."""

    @property
    def has_pending_requests(self) -> bool:
        """Whether any request was read and not answered yet."""

    @property
    def pending_pod_writes(self) -> int:
        """How many of the pending requests would change a single pod."""

    @property
    def overflows(self) -> int:
        """How many writes did not fit into the receive window, so that a part arrived at a moment in real time."""

    def retract_unsent(self) -> None:
        """Reduce the announcement of the latest write to the bytes that the kernel has sent."""

    def read_ready(self, wait_s: float = 0.0) -> bool:
        """Read what has arrived, waiting at most `wait_s`; return whether any of it came from the program."""

    def answer_requests(self) -> None:
        """Answer the requests that were read."""

    def send_next(self) -> bool:
        """Send on the first connection that has data to send; return whether there was one."""

    def close(self) -> None:
        """Close every connection and stop listening."""


class Attachment:
    """A program and the server to which it is connected."""

    def __init__(
        self, process: AttachedProcess, server: Server, cost: DecisionCost | None = None, watchdog: Duration = WATCHDOG
    ) -> None:
        """`cost` is None if decisions take no time; `watchdog` limits the real time until the program is idle."""
        self.process = process
        self.page = process.page
        self.server = server
        #: Until when the program counts as busy deciding what it has already written; None if it is not.
        self.busy_until: Instant | None = None
        self._cost = cost
        self._garbage = GarbageCollection(process.page)
        self._watchdog_s = as_float_s(watchdog)
        #: Whether the counters are reliable; no longer once the program communicates with other processes.
        self._counters_agree = True
        #: The program's inputs when it was last idle. It stays idle while they are unchanged.
        self._idle_inputs: tuple[int, int, int] | None = None

    def is_busy(self, now: Instant) -> bool:
        """Return whether the program is busy beyond `now`; it then receives nothing and none of its timers fires."""
        return self.busy_until is not None and self.busy_until > now

    def wait_idle(self) -> None:
        """Wait until the program is idle and has read everything; then have it collect its garbage if that is due."""
        if self._idle_inputs == self._inputs():
            return
        self._await_idle_report()
        if self._garbage.is_due():
            self.page.request_collection()
            self._await_idle_report()
        self._idle_inputs = self._inputs()

    def _await_idle_report(self) -> None:
        """Wait for the answer to a probe that was sent after the program had read everything.

        The answer to an earlier probe is not enough. On a busy machine bytes may arrive after the program has reported
        idle, and be read a moment later. The program is then busy, although it has answered and the counters of both
        sides agree.
        """
        watch, patience_s = Stopwatch(), _MIN_PROBE_INTERVAL_S
        number = self._probe_when_read(watch)
        while number is None or not self.page.is_idle_since(number):
            if self.page.wait(patience_s):
                number = number or self._probe_when_read(watch)
            else:
                patience_s = min(2 * patience_s, _MAX_PROBE_INTERVAL_S)
                self._check_health(watch.real_s)
                # A program that connects, or writes more than the kernel buffers, blocks until we accept and read.
                self.server.read_ready()
                self.server.retract_unsent()
                number = self._probe_when_read(watch)
        # A Go program that has exited sends no report. For others, exited threads count as asleep.
        self._check_alive()

    def _probe_when_read(self, watch: Stopwatch) -> int | None:
        """Send a probe, unless the program has something to read, which wakes it anyway; return the probe's number."""
        return self.page.probe() if self._has_read_all(watch) else None

    def _inputs(self) -> tuple[int, int, int]:
        """Return everything that can wake the program: its clock, and the bytes and disconnections it was sent."""
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
        # Bytes that have arrived may remain unread: no thread need be waiting for them.
        if not self.page.counts_all and self.page.bytes_read + self.server.unread_bytes >= self.server.sent:
            return True
        self._check_counters(watch)
        return False

    def _check_counters(self, watch: Stopwatch) -> None:
        """Stop using the counters if they still differ after a while although no bytes are in flight."""
        if watch.real_s > _IN_FLIGHT_TIMEOUT_S:
            self._check_health(watch.real_s)
            self._counters_agree = self.server.has_bytes_in_flight
            if not self._counters_agree:
                self.page.distrust_counters()

    @property
    def rounds_to_settle(self) -> int:
        """How many quiet rounds in a row prove that the program has settled."""
        return 1 if self._counters_agree else 2

    @property
    def is_repeatable(self) -> bool:
        """Whether nothing happened that may differ in another run.

        Such events are: bytes on the program's connections that were not counted, or that arrived at a moment in real
        time; a garbage collection that depended on a few kilobytes.
        """
        # Programs that do not count everything are known to be idle from the kernel.
        is_counted = not self.page.counts_all or (self._counters_agree and not self._writes_uncounted())
        return is_counted and not self.server.overflows and not self._garbage.was_marginal

    def receive(self, now: Instant) -> bool:
        """Read and answer everything the program wrote; return whether there was anything.

        If its decisions have a cost, the answer is delayed by that time.
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
        """Read everything the program wrote; return whether any request is pending."""
        watch = Stopwatch()
        while not (self._counters_agree and self.page.counts_all and self._has_received_all()):
            has_read = self.server.read_ready()
            if not self._counters_agree:
                if not has_read:
                    break
            elif self._has_received_all() and not has_read:
                break
            elif not has_read:
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
        """Exchange data with all programs that are not busy until every one of them is idle."""
        quiet = 0
        while active := [attachment for attachment in self._attachments if not attachment.is_busy(now)]:
            for attachment in active:
                attachment.wait_idle()
            if any([attachment.receive(now) for attachment in active]) or _send_next(active, now):
                quiet = 0
                continue
            quiet += 1
            if quiet >= max(attachment.rounds_to_settle for attachment in active):
                return

    def advance(self, now: Instant, horizon: Instant) -> Instant:
        """Advance the clock until a program writes something, at most to `horizon`; return the instant reached."""
        busy = [attachment.busy_until for attachment in self._attachments if attachment.busy_until is not None]
        horizon = min([horizon, *busy])
        free = [attachment for attachment in self._attachments if attachment.busy_until is None]
        before = [attachment.page.write_count for attachment in free]
        while True:
            nexts = sorted((max(self._next_timer(attachment), now), number) for number, attachment in enumerate(free))
            if not nexts or nexts[0][0] >= horizon:
                return self._move(horizon)
            (first, number), other_timers = nexts[0], [time for time, _ in nexts[1:]]
            limit = Instant(min([horizon, first + _GRANT_DURATION, *other_timers]))
            # A late wake-up may mean that the program already works, since the clock was moved to its timer.
            # A write before the grant would not end the grant, and the program would continue without an answer.
            free[number].wait_idle()
            if [attachment.page.write_count for attachment in free] == before:
                now = self._grant(free[number], now, limit)
            if [attachment.page.write_count for attachment in free] != before:
                return now

    def next_instant(self, now: Instant) -> Instant | None:
        """Return when the next timer of a program, or its busy time, ends; None without programs."""
        busy = [attachment.busy_until for attachment in self._attachments if attachment.busy_until is not None]
        timers = [self._next_timer(attachment) for attachment in self._attachments if attachment.busy_until is None]
        return max(now, min([*busy, *timers])) if self._attachments else None

    def _next_timer(self, attachment: Attachment) -> Instant:
        return Instant(attachment.page.next_timer - self._epoch_ns)

    def _grant(self, attachment: Attachment, now: Instant, limit: Instant) -> Instant:
        """Let one program jump from timer to timer before `limit`, until it writes something; return its time then.

        A timer that is due exactly at the limit is reached by moving all clocks there.
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
        """Stop every program and close its server."""
        for attachment in self._attachments:
            attachment.process.stop()
            attachment.server.close()


def _send_next(attachments: Sequence[Attachment], now: Instant) -> bool:
    return any(attachment.server.send_next() for attachment in attachments if not attachment.is_busy(now))
