"""The command `batkube` with a small study to run: as a process of its own, or in this one, which is sooner."""

from __future__ import annotations

import contextlib
import io
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from batkube.cli.main import main

#: Two jobs of one second each, the second submitted at second 1.
WORKLOAD = {
    "nb_res": 2,
    "jobs": [{"id": str(number), "subtime": number, "res": 1, "profile": "d"} for number in range(2)],
    "profiles": {"d": {"type": "delay", "delay": 1}},
}
#: A later `--out` takes the place of these.
RUN = ("run", "--workload", "w.json", "--platform", "2x1", "--out", "out")
EXPERIMENT = ("experiment", "e.yaml", "--out", "out", "--no-report")
#: A hang ends the test and not the patience of whoever waits for it; loaded machines are slow.
TIMEOUT_S = 60.0


def study(folder: Path, *policies: str, policy_file: str = "") -> Path:
    """Write a workload, an experiment with these schedulers and a file with policies into `folder`, and return it."""
    (folder / "w.json").write_text(json.dumps(WORKLOAD))
    (folder / "mine.py").write_text(policy_file)
    content = {"base": {"workload": "w.json", "platform": "2x1"}, "axes": {"scheduler": list(policies)}}
    (folder / "e.yaml").write_text(yaml.safe_dump(content))
    return folder


def command(*arguments: str, program: str = "") -> list[str]:
    """Return the command line; `program` is Python to execute first, in the same process."""
    if not program:
        return [sys.executable, "-m", "batkube", *arguments]
    return [sys.executable, "-c", f"{program}\nfrom batkube.cli.main import main\nmain()", *arguments]


def answer(
    folder: Path,
    *arguments: str,
    program: str = "",
    prepare: Callable[[], None] | None = None,
    **streams: Any,  # noqa: ANN401 - of subprocess
) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`, without a traceback; `prepare` is called in the new process."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    result = subprocess.run(
        command(*arguments, program=program),
        cwd=folder,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        preexec_fn=prepare,
        **streams,
    )
    assert "Traceback" not in f"{result.stdout}{result.stderr}", result.stderr
    return result


def answer_here(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder` as a process of its own would, but within this one."""
    output, complaint, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(complaint),
        mock.patch.object(sys, "argv", ["batkube", *arguments]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), complaint.getvalue())


def no_room_for_files() -> None:
    """Let no file grow, as on a disk that is full; for `prepare`."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
