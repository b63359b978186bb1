"""Wait for processes that are not children of this one."""

from __future__ import annotations

import time
from pathlib import Path


def wait_for_end(pid: int) -> None:
    """Wait until the process has ended; a zombie counts as ended."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still running")
