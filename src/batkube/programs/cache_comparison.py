"""What kube-scheduler itself finds wrong with its cache.

On SIGUSR2 it compares its cache with what its informers know, logs what differs, and dumps the cache
(Kubernetes: pkg/scheduler/backend/cache/debugger). The comparison is asked for while everybody is idle, and waited for
in real time, so that nothing goes on meanwhile that would look like a difference.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Sequence

from batkube.kernel.instants import Instant
from batkube.kernel.stopwatch import Stopwatch
from batkube.programs.program import ExternalProgram
from batkube.timing.processes.attached_process import AttachedProcess

#: Programs that are known to take the signal; others would be ended by it.
_SUPPORTED = ("kube-scheduler", "scheduler-plugins")
#: What is logged last, whatever was found.
_DONE = b"Dump of scheduling queue"
_MISMATCH = re.compile(rb'"[Cc]ache mismatch" (.*)')
_TIMEOUT_S, _STEP_S = 10.0, 0.002


def supports_cache_comparison(scheduler: ExternalProgram) -> bool:
    """Tell whether a program compares its cache when it is asked to."""
    return scheduler.name.partition("@")[0] in _SUPPORTED


class CacheComparison:
    """One scheduler that is asked now and then."""

    def __init__(self, process: AttachedProcess) -> None:
        self._process = process

    def run(self, now: Instant) -> list[dict[str, object]] | None:
        """Have the cache compared; return a line for each difference, None if there was no answer."""
        log, pieces = self._process.log, list[bytes]()
        log.drain()
        log.follow(pieces.append)
        os.kill(self._process.pid, signal.SIGUSR2)
        stopwatch = Stopwatch()
        try:
            while stopwatch.real_s < _TIMEOUT_S:
                log.drain()
                text = b"".join(pieces)
                if _DONE in text:
                    return _differences(self._process.name, _MISMATCH.findall(text), now)
                threading.Event().wait(_STEP_S)
            return None
        finally:
            log.unfollow(pieces.append)


def _differences(scheduler: str, mismatches: Sequence[bytes], now: Instant) -> list[dict[str, object]]:
    return [
        {"kind": "cache", "scheduler": scheduler, "what": text.decode("utf-8", "replace"), "at": now}
        for text in mismatches
    ]
