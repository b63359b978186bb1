"""The command `batkube` and a small study for it: in a new process, or in this one, which is faster."""

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
#: A later `--out` overrides this one.
RUN = ("run", "--workload", "w.json", "--platform", "2x1", "--out", "out")
EXPERIMENT = ("experiment", "e.yaml", "--out", "out", "--no-report")
#: Stops a command that hangs; generous, because loaded machines are slow.
TIMEOUT_S = 60.0


def write_study(folder: Path, *policies: str, policy_file: str = "") -> Path:
    """Write a workload, an experiment with these schedulers and a policy file into `folder`; return `folder`."""
    (folder / "w.json").write_text(json.dumps(WORKLOAD))
    (folder / "mine.py").write_text(policy_file)
    content = {"base": {"workload": "w.json", "platform": "2x1"}, "axes": {"scheduler": list(policies)}}
    (folder / "e.yaml").write_text(yaml.safe_dump(content))
    return folder


def command(*arguments: str, program: str = "") -> list[str]:
    """Return the command line; `program` is Python code to execute first in its process."""
    if not program:
        return [sys.executable, "-m", "batkube", *arguments]
    return [sys.executable, "-c", f"{program}\nfrom batkube.cli.main import main\nmain()", *arguments]


def run_batkube(
    folder: Path,
    *arguments: str,
    program: str = "",
    prepare: Callable[[], None] | None = None,
    **streams: Any,  # noqa: ANN401 - of subprocess
) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`, and assert that it prints no traceback; `prepare` is called in the new process."""
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


def run_in_process(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`, within this process."""
    output, errors, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
        mock.patch.object(sys, "argv", ["batkube", *arguments]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def forbid_file_growth() -> None:
    """Make every write to a file fail, as on a full disk; for `prepare`."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
