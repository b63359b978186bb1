"""Failed scheduling attempts, parsed from kube-scheduler's log.

The API shows only some of them: a pod's condition changes only with the reason, and client-go aggregates repeated
events for minutes (tools/record, EventCorrelator). The log has one line per attempt, with its virtual time. For
programs that log in another format, only events and conditions count (see `observer`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from batkube.cluster.store import Key
from batkube.kernel.instants import Instant
from batkube.programs.observation.log_lines import KLOG_HEADER, LogLines, instant_in_log
from batkube.timing.processes.program_log import ProgramLog

AttemptHandler = Callable[[Key, str, Instant], None]
"""Called with the pod, the reason and the instant of a failed attempt."""

#: klog's header and the messages (kubernetes/pkg/scheduler/schedule_one.go, handleSchedulingFailure; 1.19: factory.go).
_LINE = re.compile(KLOG_HEADER + rb'.*?"(?:Unable to schedule pod[;, ][^"]*|Error scheduling pod; retrying)" (.*)$')
_POD = re.compile(rb'pod="([^"]+)"')
_REASON = re.compile(rb'err="([^"\\]*(?:\\.[^"\\]*)*)"')
#: Logged at start-up ("Starting Kubernetes Scheduler"), in quotes since about 1.20.
_VERSION = re.compile(rb'Starting[^"\n]*"? version[= ]"?([^"\s]+)')


class AttemptLog:
    """Follows the log of a scheduler."""

    def __init__(self, log: ProgramLog, listener: AttemptHandler) -> None:
        self._listener = listener
        self._lines = LogLines(log, b"schedul")

    def read(self, now: Instant) -> None:
        """Report the attempts logged since the last call, none later than `now`."""
        for line in self._lines.pop_all():
            if match := _LINE.match(line):
                self._report(match, now)

    def discard(self) -> None:
        """Ignore everything logged since the last call: its timestamps are not virtual."""
        self._lines.discard()

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
