"""Errors of the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_an_error_prints_a_traceback_only_with_the_option(tmp_path: Path) -> None:
    words = ["run", "--workload", "absent.json", "--platform", "4x1", "--out", "out"]
    commands = [[sys.executable, "-m", "batkube", *options, *words] for options in ([], ["--traceback"])]
    plain, with_traceback = (
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False) for command in commands
    )

    assert plain.returncode == with_traceback.returncode == 2
    assert plain.stderr.startswith("error: ")
    assert with_traceback.stderr.startswith("Traceback (most recent call last):")
    assert with_traceback.stderr.endswith(plain.stderr)
