"""Runs a command in a process of its own and says what it cost, as the kernel accounted it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process used."""

    real_s: float
    cpu_s: float
    peak_memory_bytes: int


class CommandFailed(Exception):
    """A measured command did not end well; the message says how."""


def measure(command: Sequence[str], limit_s: float) -> Cost:
    """Run `command` to its end and return its cost. Raises CommandFailed, also when it takes longer than `limit_s`."""
    with tempfile.TemporaryFile() as output:
        began_s = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        timer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            # wait4 and not Popen.wait, because it alone tells the usage of this one child.
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            timer.cancel()
        real_s = time.perf_counter() - began_s
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise CommandFailed(_reason(process.returncode, real_s, limit_s, output.read()))
    return Cost(real_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def _reason(returncode: int, real_s: float, limit_s: float, output: bytes) -> str:
    if real_s >= limit_s:
        return f"stopped after {limit_s:.0f} s"
    lines = output.decode(errors="replace").strip().splitlines() or ["it said nothing"]
    return f"exit code {returncode}: {lines[-1]}"
