"""`batkube fairness`."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from tests.commands import run_in_process
from tests.outputs.measures.user_runs import simulated


def test_the_command_prints_indices_and_writes_all_users(tmp_path: Path) -> None:
    simulated(tmp_path, "all")
    simulated(tmp_path, "solo", "2")
    output = run_in_process(tmp_path, "fairness", "all", "--solo", "solo", "--csv", "users.csv").stdout
    table = pd.read_csv(tmp_path / "users.csv", dtype={"user": str}).set_index("user")
    again = run_in_process(tmp_path, "fairness", "all", "--csv", "users.csv")

    assert "slowdown against a solo run" in output
    assert " ".join(next(line for line in output.splitlines() if "mean wait" in line).split()).startswith("mean wait 3")
    assert table.loc["2", "solo_slowdown"] == pytest.approx(1.9)
    assert (again.returncode, "already exists" in again.stderr) == (2, True)


def test_a_run_of_one_user_is_refused(tmp_path: Path) -> None:
    simulated(tmp_path, "one", "2")

    assert "at least two" in run_in_process(tmp_path, "fairness", "one").stderr
