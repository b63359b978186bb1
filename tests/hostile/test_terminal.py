"""Names, paths and log lines of strangers cannot control the terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

from tests.commands import RUN, command, run_batkube, write_study

ESCAPE = "\x1b]0;owned\x07\x1b[31m"


def test_an_error_shows_the_control_characters_of_a_path(tmp_path: Path) -> None:
    write_study(tmp_path)

    result = run_batkube(tmp_path, *RUN, "--workload", f"{ESCAPE}.json")

    assert (result.returncode, "\x1b" in result.stderr, "\\x1b]0;owned\\x07" in result.stderr) == (2, False, True)


def test_the_last_lines_of_a_program_cannot_control_the_terminal(tmp_path: Path) -> None:
    write_study(tmp_path)
    (tmp_path / "crash.py").write_text(f"print({ESCAPE!r})\nraise SystemExit(3)\n")

    result = run_batkube(tmp_path, *RUN, "--scheduler", "python:./crash.py")

    assert (result.returncode, "\x1b" in result.stderr, "\\x1b[31m" in result.stderr) == (1, False, True)


def test_escape_sequences_in_untrusted_text_do_not_reach_the_terminal(tmp_path: Path) -> None:
    write_study(tmp_path)
    (tmp_path / f"{ESCAPE}.json").write_text((tmp_path / "w.json").read_text())
    ours, theirs = pty.openpty()
    words = command("workload", "show", f"{ESCAPE}.json")
    with subprocess.Popen(words, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        process.wait(60)
        printed = os.read(ours, 100_000)
    os.close(ours)

    assert b"\x1b]0;" not in printed
    assert b"\x1b[31m" not in printed
