"""Failed attempts to place pods, read from what kube-scheduler logs.

The API shows few of them: a pod's condition changes only when the reason does, and client-go tells of an event's first
two occurrences and then keeps count in private for minutes. The log has a line for each, with its virtual time. A
program that logs other lines is judged by its events and conditions alone (see `observer`).
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
#: Kubernetes' own programs tell it when they start ("Starting Kubernetes Scheduler"), since 1.20 or so in quotes.
_VERSION = re.compile(rb'Starting[^"\n]*"? version[= ]"?([^"\s]+)')
_MICROSECOND = datetime.timedelta(microseconds=1)


class AttemptLog:
    """Follows the log of one scheduler."""

    def __init__(self, log: ProgramLog, listener: AttemptHandler) -> None:
        self._log = log
        self._listener = listener
        #: Lines that may tell of an attempt, and the beginning of the next line.
        self._lines: deque[bytes] = deque()
        self._rest = b""
        log.follow(self._append)

    def _append(self, piece: bytes) -> None:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        self._lines.extend(line for line in lines if b"schedul" in line)

    def read(self, now: Instant) -> None:
        """Tell of the attempts logged since the last call, none of them later than `now`."""
        self._log.drain()
        while self._lines:
            if match := _LINE.match(self._lines.popleft()):
                self._report(match, now)

    def discard(self) -> None:
        """Ignore what was logged since the last call: its times are not those of the run."""
        self._lines.clear()

    def _report(self, match: re.Match[bytes], now: Instant) -> None:
        pod, why = _POD.search(match[7]), _REASON.search(match[7])
        if pod is not None:
            reason = why[1].decode(errors="replace").replace('\\"', '"') if why else "no nodes are registered"
            at = instant_in_log(match.group(1, 2, 3, 4, 5, 6), now)
            self._listener(Key(pod[1].decode()), reason, at)


def version_in_log(beginning: bytes | bytearray) -> str | None:
    """Return the version that a scheduler told when it started, if it did."""
    match = _VERSION.search(beginning)
    return match[1].decode() if match else None


@functools.lru_cache(maxsize=1)  # hundreds of pods may be tried at one instant
def instant_in_log(fields: tuple[bytes, ...], now: Instant) -> Instant:
    """Return the instant of month, day, hour, minute, second and microsecond: the last such one up to `now`.

    klog writes neither the year nor nanoseconds, so what was logged within the present microsecond was logged now.
    """
    today = EPOCH + datetime.timedelta(microseconds=now // 1000)
    then = datetime.datetime(today.year, *map(int, fields), tzinfo=datetime.UTC)  # type: ignore[arg-type, misc]
    if then > today:
        then = then.replace(year=today.year - 1)
    micros = (then - EPOCH) // _MICROSECOND
    return now if micros == now // 1000 else Instant(micros * 1000)
