"""Log levels of the command line."""

from __future__ import annotations

from pathlib import Path

from tests.commands import RUN, run_batkube, write_study


def test_verbose_logs_to_standard_error_and_standard_output_stays_the_same(tmp_path: Path) -> None:
    write_study(tmp_path)
    words = (*RUN, "--force", "--quiet")
    default, verbose = (run_batkube(tmp_path, *options, *words) for options in ([], ["-v"]))
    errors = run_batkube(tmp_path, "--log-level", "error", *words)

    assert default.stderr == errors.stderr == ""
    assert default.stdout == verbose.stdout == errors.stdout
    assert "INFO: batkube.simulation.run: read 2 jobs and 0 objects for 2 machines\n" in verbose.stderr
    invalid = run_batkube(tmp_path, "--log-level", "loud", *words)
    assert (invalid.returncode, "'loud' is not one of" in invalid.stderr) == (2, True)
