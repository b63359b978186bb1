"""Real time, for progress displays, the manifest and the pace of `serve`. Never compared with virtual time."""

from __future__ import annotations

import contextlib
import resource
import time
from pathlib import Path

from batkube.kernel.instants import UNIX_START, Instant


class Stopwatch:
    """Measures real seconds since it was made."""

    def __init__(self) -> None:
        self._real_s = time.perf_counter()

    @property
    def real_s(self) -> float:
        """Real seconds elapsed."""
        return time.perf_counter() - self._real_s


class CpuStopwatch(Stopwatch):
    """Measures CPU seconds, too, which takes a system call: not for what happens often."""

    def __init__(self) -> None:
        super().__init__()
        self._cpu_s = time.process_time()

    @property
    def cpu_s(self) -> float:
        """CPU seconds this process used since."""
        return time.process_time() - self._cpu_s


def peak_memory_bytes() -> int:
    """Return the largest resident size this process ever had.

    From the kernel's high-water mark where there is one (Linux): getrusage also counts what the parent had when it
    forked us, which a small run started from a large process would be blamed for.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reset_peak_memory() -> None:
    """Have `peak_memory_bytes` count from now on, where the kernel can (Linux): for a process that does many runs."""
    with contextlib.suppress(OSError):
        # 5 resets the high-water mark. Linux: Documentation/filesystems/proc.rst, "clear_refs".
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def wall_clock_instant() -> Instant:
    """Return the real time of day as an instant of the calendar that Kubernetes timestamps are written in.

    For `batkube serve` alone: clients compute ages with their own clock, so the virtual one begins where theirs is.
    """
    return Instant(time.time_ns() + UNIX_START)
