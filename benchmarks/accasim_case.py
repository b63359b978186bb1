"""AccaSim 1.1.3 for comparison: its installation, its command and its results."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from datetime import datetime
from pathlib import Path

VERSION = "1.1.3"
_RUNNER = Path(__file__).with_name("accasim_runner.py")


class NotAvailable(Exception):
    """AccaSim cannot be installed here; the message says why."""


def prepare() -> Path:
    """Return the Python of a virtualenv with AccaSim, created in the user's cache folder on first use."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "batkube" / f"accasim-{VERSION}-python{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", f"accasim=={VERSION}"]
        result = subprocess.run(install, capture_output=True, text=True, check=False)
        if result.returncode:
            lines = result.stderr.strip().splitlines() or ["pip printed nothing"]
            raise NotAvailable(f"pip could not install it: {lines[-1]}")
        (folder / "complete").touch()
    return python


def command(python: Path, workload: Path, nodes: int, policy: str, folder: Path) -> list[str]:
    """Return the command that simulates `workload` on `nodes` nodes of one core."""
    return [str(python), str(_RUNNER), str(workload), str(nodes), policy, str(folder)]


def outcome(workload: Path, folder: Path) -> tuple[int, float, float]:
    """Return the jobs run, the time from the first submission to the last completion, and the mean wait, in seconds.

    AccaSim's dispatching plan has one line per job: id;user;submission__nodes__start;end;… with dates.
    """
    waits_s: list[float] = []
    first, last = datetime.max, datetime.min
    with (folder / f"sched-{workload.name}").open() as lines:
        for line in lines:
            head, _, times = line.split("__")
            submitted = datetime.fromisoformat(head.split(";")[2])
            started, ended = (datetime.fromisoformat(text) for text in times.split(";")[:2])
            waits_s.append((started - submitted).total_seconds())
            first, last = min(first, submitted), max(last, ended)
    return len(waits_s), (last - first).total_seconds(), sum(waits_s) / len(waits_s)
