"""Make kube-scheduler compare its cache with its informers.

On SIGUSR2, kube-scheduler compares its cache with its informers, logs the differences and dumps the cache (Kubernetes:
pkg/scheduler/backend/cache/debugger). The signal is sent while all programs are idle, and the run waits for the result
in real time, so that no event in between is mistaken for a difference.
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

#: Programs known to handle the signal; it would kill others.
_SUPPORTED = ("kube-scheduler", "scheduler-plugins")
#: The last message that is logged, with or without differences.
_DONE = b"Dump of scheduling queue"
_MISMATCH = re.compile(rb'"[Cc]ache mismatch" (.*)')
_TIMEOUT_S, _STEP_S = 10.0, 0.002


def supports_cache_comparison(scheduler: ExternalProgram) -> bool:
    """Return whether a program compares its cache on SIGUSR2."""
    return scheduler.name.partition("@")[0] in _SUPPORTED


class CacheComparison:
    """Runs cache comparisons in one scheduler."""

    def __init__(self, process: AttachedProcess) -> None:
        self._process = process

    def run(self, now: Instant) -> list[dict[str, object]] | None:
        """Run a comparison; return a row for each difference, or None if the program did not finish it in time."""
        log, chunks = self._process.log, list[bytes]()
        log.drain()
        log.follow(chunks.append)
        os.kill(self._process.pid, signal.SIGUSR2)
        stopwatch = Stopwatch()
        try:
            while stopwatch.real_s < _TIMEOUT_S:
                log.drain()
                text = b"".join(chunks)
                if _DONE in text:
                    return _differences(self._process.name, _MISMATCH.findall(text), now)
                threading.Event().wait(_STEP_S)
            return None
        finally:
            log.unfollow(chunks.append)


def _differences(scheduler: str, mismatches: Sequence[bytes], now: Instant) -> list[dict[str, object]]:
    return [
        {"kind": "cache", "scheduler": scheduler, "what": text.decode("utf-8", "replace"), "at": now}
        for text in mismatches
    ]
