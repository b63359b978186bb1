"""A program that does not start, and what is shown of the log of one that failed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process_ends import wait_for_end

from batkube.kernel.errors import InputError
from batkube.timing.page import ClockPage
from batkube.timing.processes import AttachedProcess, last_lines


def test_a_file_that_cannot_be_started_is_called_a_program(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.touch()

    with pytest.raises(InputError, match=r"^program 'notes': cannot be started: Permission denied"):
        AttachedProcess("notes", [str(file)], ClockPage(0, deterministic=True, seed=0), tmp_path / "log.txt", {})


def test_the_flags_that_klog_lists_do_not_hide_what_matters() -> None:
    flags = [f'I0101 00:00:00.000000      42 flags.go:64] FLAG: --flag-{number}="1"' for number in range(40)]
    matters = 'E0101 00:00:00.000000      42 run.go:74] "command failed" err="no kind \\"Wrong\\" is registered"'

    assert last_lines("\n".join(["started", matters, *flags])) == ["started", matters]
    assert last_lines("\n".join(f"line {number}" for number in range(100))) == [f"line {n}" for n in range(85, 100)]


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's parent-death signal")
def test_a_program_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from batkube.timing.page import ClockPage
from batkube.timing.processes import AttachedProcess
page = ClockPage(0, deterministic=True, seed=0)
command = [{sys.executable!r}, "-c", "import time; time.sleep(600)"]
process = AttachedProcess("sleep", command, page, Path("log.txt"), {{}})
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    starter = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert starter.returncode == -signal.SIGKILL
    wait_for_end(int(starter.stdout))
