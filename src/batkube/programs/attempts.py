"""Failed attempts to place pods, read from kube-scheduler's log.

The API shows few of them: a pod's condition changes only when the reason does, and client-go tells of an event's first
two occurrences and then keeps count in private for minutes. The log has a line for each, with its virtual time. A
program that logs other lines is judged by its events and conditions alone (see `observer`).
"""

from __future__ import annotations

import datetime
import functools
import os
import re
from collections.abc import Callable
from pathlib import Path

from batkube.cluster.store import Key
from batkube.kernel.instants import EPOCH, Instant

Listener = Callable[[Key, str, Instant], None]
"""Called with the pod, the reason and the instant of a failed attempt."""

#: klog's header and the messages (kubernetes/pkg/scheduler/schedule_one.go, handleSchedulingFailure; 1.19: factory.go).
_LINE = re.compile(
    rb"^[IEW](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) .*?"
    rb'"(?:Unable to schedule pod[;, ][^"]*|Error scheduling pod; retrying)" (.*)$'
)
_POD = re.compile(rb'pod="([^"]+)"')
_WHY = re.compile(rb'err="([^"\\]*(?:\\.[^"\\]*)*)"')
#: Kubernetes' own programs tell it when they start ("Starting Kubernetes Scheduler"), since 1.20 or so in quotes.
_VERSION = re.compile(rb'Starting[^"\n]*"? version[= ]"?([^"\s]+)')
_BEGINNING = 1 << 20
_MICROSECOND = datetime.timedelta(microseconds=1)


class AttemptLog:
    """Follows the log of one scheduler."""

    def __init__(self, path: Path, listener: Listener) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._listener = listener
        self._rest = b""

    def read(self, now: Instant) -> None:
        """Tell of the attempts logged since the last call, none of them later than `now`."""
        while piece := os.read(self._file, 1 << 16):
            *lines, self._rest = (self._rest + piece).split(b"\n")
            for line in lines:
                if b"schedul" in line and (match := _LINE.match(line)):
                    self._tell(match, now)

    def _tell(self, match: re.Match[bytes], now: Instant) -> None:
        pod, why = _POD.search(match[7]), _WHY.search(match[7])
        if pod is not None:
            reason = why[1].decode(errors="replace").replace('\\"', '"') if why else "no nodes are registered"
            at = instant_in_log(match.group(1, 2, 3, 4, 5, 6), now)
            self._listener(Key(pod[1].decode()), reason, at)

    def close(self) -> None:
        """Give the file back."""
        os.close(self._file)


def version_in_log(path: Path) -> str | None:
    """Return the version that a scheduler told when it started, if it did."""
    with path.open("rb") as file:
        match = _VERSION.search(file.read(_BEGINNING))
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
