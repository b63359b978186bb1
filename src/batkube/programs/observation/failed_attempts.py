"""Failed scheduling attempts, parsed from kube-scheduler's log.

The API shows only some of them: a pod's condition changes only with the reason, and client-go aggregates repeated
events for minutes (tools/record, EventCorrelator). The log has one line per attempt, with its virtual time. For
programs that log in another format, only events and conditions count (see `observer`).
"""

from __future__ import annotations

import datetime
import functools
import re
from collections import deque
from collections.abc import Callable

from batkube.cluster.store import Key
from batkube.kernel.instants import EPOCH, Instant
from batkube.timing.processes.program_log import ProgramLog

AttemptHandler = Callable[[Key, str, Instant], None]
"""Called with the pod, the reason and the instant of a failed attempt."""

#: klog's header and the messages (kubernetes/pkg/scheduler/schedule_one.go, handleSchedulingFailure; 1.19: factory.go).
_LINE = re.compile(
    rb"^[IEW](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) .*?"
    rb'"(?:Unable to schedule pod[;, ][^"]*|Error scheduling pod; retrying)" (.*)$'
)
_POD = re.compile(rb'pod="([^"]+)"')
_REASON = re.compile(rb'err="([^"\\]*(?:\\.[^"\\]*)*)"')
#: Logged at start-up ("Starting Kubernetes Scheduler"), in quotes since about 1.20.
_VERSION = re.compile(rb'Starting[^"\n]*"? version[= ]"?([^"\s]+)')
_MICROSECOND = datetime.timedelta(microseconds=1)


class AttemptLog:
    """Follows the log of a scheduler."""

    def __init__(self, log: ProgramLog, listener: AttemptHandler) -> None:
        self._log = log
        self._listener = listener
        #: Lines that may report an attempt, and the incomplete last line.
        self._lines: deque[bytes] = deque()
        self._partial_line = b""
        log.follow(self._append)

    def _append(self, piece: bytes) -> None:
        *lines, self._partial_line = (self._partial_line + piece).split(b"\n")
        self._lines.extend(line for line in lines if b"schedul" in line)

    def read(self, now: Instant) -> None:
        """Report the attempts logged since the last call, none later than `now`."""
        self._log.drain()
        while self._lines:
            if match := _LINE.match(self._lines.popleft()):
                self._report(match, now)

    def discard(self) -> None:
        """Ignore everything logged since the last call: its timestamps are not virtual."""
        self._lines.clear()

    def _report(self, match: re.Match[bytes], now: Instant) -> None:
        pod, error = _POD.search(match[7]), _REASON.search(match[7])
        if pod is not None:
            reason = error[1].decode(errors="replace").replace('\\"', '"') if error else "no nodes are registered"
            at = instant_in_log(match.group(1, 2, 3, 4, 5, 6), now)
            self._listener(Key(pod[1].decode()), reason, at)


def version_in_log(log_start: bytes | bytearray) -> str | None:
    """Return the version that a scheduler logged at start-up, if any."""
    match = _VERSION.search(log_start)
    return match[1].decode() if match else None


@functools.lru_cache(maxsize=1)  # hundreds of pods may be tried at one instant
def instant_in_log(fields: tuple[bytes, ...], now: Instant) -> Instant:
    """Return the latest instant up to `now` with this month, day, hour, minute, second and microsecond.

    klog logs neither the year nor nanoseconds. A line of the current microsecond is assumed to be logged at `now`.
    """
    today = EPOCH + datetime.timedelta(microseconds=now // 1000)
    time = datetime.datetime(today.year, *map(int, fields), tzinfo=datetime.UTC)  # type: ignore[arg-type, misc]
    if time > today:
        time = time.replace(year=today.year - 1)
    micros = (time - EPOCH) // _MICROSECOND
    return now if micros == now // 1000 else Instant(micros * 1000)
