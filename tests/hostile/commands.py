"""The command line as a user has it, with a small workload to give it."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from batkube.cli.main import main

WORKLOAD = {
    "nb_res": 2,
    "jobs": [{"id": str(n), "subtime": 0, "res": 1 + n % 2, "profile": "d"} for n in range(1, 5)],
    "profiles": {"d": {"type": "delay", "delay": 3}},
}
EXPERIMENT = """
base: {workload: w.json, platform: 2x1}
axes: {scheduler: [policy:fcfs, policy:sjf]}
"""
#: Says that it is there, in the middle of a run, and waits.
WAITING = """
import time
from batkube.policies.interface import Policy
class Waiting(Policy):
    def decide(self, view):
        print("here", flush=True)
        time.sleep(60)
        yield from ()
"""
RUN = ("run", "--workload", "w.json", "--platform", "2x1")


def prepare(folder: Path) -> None:
    """Put a workload, an experiment and a policy that waits into `folder`."""
    (folder / "w.json").write_text(json.dumps(WORKLOAD))
    (folder / "e.yaml").write_text(EXPERIMENT)
    (folder / "waiting.py").write_text(WAITING)


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    output: str
    complaint: str


def batkube(folder: Path, *arguments: str | Path) -> Ended:
    """Run a command in `folder`, as in a process of its own but sooner; never may it end in a traceback."""
    output, complaint, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(complaint),
        mock.patch.object(sys, "argv", ["batkube", *map(str, arguments)]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Ended(code, output.getvalue(), complaint.getvalue())


def command(*arguments: str | Path) -> list[str]:
    """Return the line that runs the command as a user does."""
    return [sys.executable, "-m", "batkube", *map(str, arguments)]


def apart(folder: Path, line: Sequence[str], *, limits: Callable[[], None] | None = None) -> Ended:
    """Run a program in `folder`, in a process of its own; it must end soon."""
    done = subprocess.run(line, cwd=folder, preexec_fn=limits, capture_output=True, text=True, timeout=60, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def no_room_for_files() -> None:
    """Let no file grow, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
