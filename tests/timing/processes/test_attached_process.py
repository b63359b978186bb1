"""A program that cannot be started, and one that ends with its parent process."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process_ends import wait_for_end

from batkube.kernel.errors import InputError
from batkube.timing.pages.clock_page import ClockPage
from batkube.timing.processes.attached_process import AttachedProcess
from batkube.timing.processes.program_log import ProgramLog


def test_a_file_that_cannot_be_started_is_an_input_error(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.touch()

    log = ProgramLog(tmp_path / "log.txt")
    with pytest.raises(InputError, match=r"^program 'notes': cannot be started: Permission denied"):
        AttachedProcess("notes", [str(file)], ClockPage(0, deterministic=True, seed=0), log, {})
    log.close()


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's parent-death signal")
def test_a_program_does_not_outlive_its_parent(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from batkube.timing.pages.clock_page import ClockPage
from batkube.timing.processes.attached_process import AttachedProcess
from batkube.timing.processes.program_log import ProgramLog
page = ClockPage(0, deterministic=True, seed=0)
command = [{sys.executable!r}, "-c", "import time; time.sleep(600)"]
process = AttachedProcess("sleep", command, page, ProgramLog(Path("log.txt")), {{}})
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    starter = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert starter.returncode == -signal.SIGKILL
    wait_for_end(int(starter.stdout))
