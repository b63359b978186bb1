"""Append a table to a page of results, with the commit, the command and the machine."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent


def measured_commit() -> str:
    """Return the commit that is measured."""
    changed = ", with uncommitted changes" if _git("status", "--porcelain", "--", "../src") else ""
    return _git("log", "-1", "--format=%h of %cs") + changed


def machine() -> str:
    """Return a description of the machine."""
    cpu = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return f"{os.cpu_count()} cores ({cpu}), Python {platform.python_version()}"


def record(results: Path, subject: str, table: Sequence[str]) -> None:
    """Append a table; `subject` is the result of `measured_commit` at the start of the measurement."""
    command = shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    results.parent.mkdir(exist_ok=True)
    with results.open("a", encoding="utf-8") as file:
        file.write("\n".join([f"## {subject}", "", f"`{command}`; {machine()}.", "", *table, "", ""]))


def _git(*arguments: str) -> str:
    result = subprocess.run(["git", "-C", str(HERE), *arguments], capture_output=True, text=True, check=False)
    return result.stdout.strip() or ("" if result.returncode == 0 else "unknown commit")
