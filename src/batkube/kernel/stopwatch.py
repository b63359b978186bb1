"""Real time, for progress displays, the manifest and the pace of `serve`. Never compared with virtual time."""

from __future__ import annotations

import contextlib
import resource
import time
from pathlib import Path

from batkube.kernel.instants import UNIX_START, Instant


class Stopwatch:
    """Measures real seconds since its creation."""

    def __init__(self) -> None:
        self._real_s = time.perf_counter()

    @property
    def real_s(self) -> float:
        """Elapsed real seconds."""
        return time.perf_counter() - self._real_s


class CpuStopwatch(Stopwatch):
    """Measures CPU seconds as well. Each reading is a system call, so do not read it often."""

    def __init__(self) -> None:
        super().__init__()
        self._cpu_s = time.process_time()

    @property
    def cpu_s(self) -> float:
        """CPU seconds used by this process since its creation."""
        return time.process_time() - self._cpu_s


def peak_memory_bytes() -> int:
    """Return the peak resident set size of this process.

    Reads VmHWM from /proc on Linux. getrusage also counts the memory of the parent at the fork, so a small run started
    by a large process would report too much.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak_memory() -> None:
    """Restart `peak_memory_bytes` from the current size, for processes that do many runs (Linux only)."""
    with contextlib.suppress(OSError):
        # 5 resets the high-water mark. Linux: Documentation/filesystems/proc.rst, "clear_refs".
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def wall_clock_instant() -> Instant:
    """Return the current wall-clock time as an instant of the simulated calendar.

    Only for `batkube serve`: clients compute ages with their own clock, so the virtual clock must start at the real
    time.
    """
    return Instant(time.time_ns() + UNIX_START)
