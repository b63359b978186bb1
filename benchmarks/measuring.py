"""Run a command in its own process, and measure its cost as accounted by the kernel.

The command is started by a second, small process (this file, run as a script). In Linux a new process inherits the peak
memory of the process that forked it, so a benchmark that had read a large trace would measure its own memory.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a process."""

    real_s: float
    cpu_s: float
    peak_memory_bytes: int


class CommandFailed(Exception):
    """A measured command failed, or exceeded its time limit."""


def measure(command: Sequence[str], limit_s: float) -> Cost:
    """Run a command and return its cost; raises CommandFailed if it fails or takes longer than `limit_s`."""
    launcher = [sys.executable, "-I", "-S", __file__, str(limit_s), *command]
    # The command prints to standard error only, and the launcher its report to standard output.
    result = subprocess.run(launcher, capture_output=True, text=True, check=False)
    if result.returncode:
        raise CommandFailed(f"could not be started: {_last_line(result.stderr)}")
    report = json.loads(result.stdout)
    if report["real_s"] >= limit_s:
        raise CommandFailed(f"stopped after {limit_s:.0f} s")
    if report["exit_code"]:
        raise CommandFailed(f"exit code {report['exit_code']}: {_last_line(result.stderr)}")
    return Cost(report["real_s"], report["cpu_s"], report["peak_memory_bytes"])


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no output"])[-1]


def launch(limit_s: float, command: Sequence[str]) -> None:
    """Run `command`, and print its cost as JSON."""
    began_s = time.perf_counter()
    process = subprocess.Popen(command, stdout=sys.stderr, start_new_session=True)
    timer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    # wait4 instead of Popen.wait, since it returns the resource usage of this child.
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    report = {
        "real_s": time.perf_counter() - began_s,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_memory_bytes": usage.ru_maxrss * 1024,
        "exit_code": os.waitstatus_to_exitcode(status),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    launch(float(sys.argv[1]), sys.argv[2:])
