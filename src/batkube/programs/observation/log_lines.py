"""Reads the log of a program line by line, and parses the instants of klog lines."""

from __future__ import annotations

import datetime
import functools
from collections import deque

from batkube.kernel.instants import EPOCH, Instant
from batkube.timing.processes.program_log import ProgramLog

#: klog's header: severity, month, day, and time of day (vendor/k8s.io/klog/v2/klog.go, formatHeader).
KLOG_HEADER = rb"^[IEW](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) "
_MICROSECOND = datetime.timedelta(microseconds=1)


class LogLines:
    """Collects the lines of a program's log that contain `marker`."""

    def __init__(self, log: ProgramLog, marker: bytes) -> None:
        self._log = log
        self._marker = marker
        #: Complete lines, and the incomplete last line.
        self._lines: deque[bytes] = deque()
        self._partial_line = b""
        log.follow(self._append)

    def _append(self, piece: bytes) -> None:
        *lines, self._partial_line = (self._partial_line + piece).split(b"\n")
        self._lines.extend(line for line in lines if self._marker in line)

    def pop_all(self) -> list[bytes]:
        """Return the lines logged since the last call."""
        self._log.drain()
        lines = []
        while self._lines:
            lines.append(self._lines.popleft())
        return lines

    def discard(self) -> None:
        """Ignore everything logged since the last call."""
        self._lines.clear()


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
