"""No number is read from a file that was cut without a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import RUN, run_in_process, write_study


@pytest.mark.parametrize("name", ["jobs.csv", "pods.csv", "nodes.csv", "machine_states.csv"])
def test_tables_that_were_cut_after_the_run_are_reported(tmp_path: Path, name: str) -> None:
    write_study(tmp_path)
    for out in ("a", "b"):
        assert run_in_process(tmp_path, *RUN, "--out", out).returncode == 0
    table = tmp_path / "b" / name
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))

    compared = run_in_process(tmp_path, "compare", "a", "b")
    reported = run_in_process(tmp_path, "report", "b", "-o", "r.html")

    assert f"warning: b has files that were changed after the run: {name}" in compared.stdout
    assert "warning: a " not in compared.stdout
    assert reported.returncode == 0
    assert f"changed after the run: {name}" in (tmp_path / "r.html").read_text()
