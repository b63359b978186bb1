"""Strict reading of CSV files."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.outputs.results import Results


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "lacks the columns job_id"),
        ("job_id,job_id\n", "line 1: has two columns with the same name"),
        ("job_id,submission_time,starting_time,finish_time,allocated_resources\n1,0,0\n", "line 2: has 3 fields"),
        (
            "job_id,submission_time,starting_time,finish_time,allocated_resources\n1,0,0,1,0\n2,soon,0,1,0\n",
            "line 3, column submission_time: 'soon' is not a number",
        ),
        (
            "job_id,submission_time,starting_time,finish_time,allocated_resources\n1,0,0,1,7-3\n",
            "line 2, column allocated_resources: '7-3' is not an interval",
        ),
    ],
)
def test_an_invalid_jobs_csv_is_rejected_with_the_place(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "jobs.csv").write_text(content)

    with pytest.raises(InputError, match=message):
        _ = Results(tmp_path).jobs


def test_a_binary_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_bytes(b"\x89PNG\xff")

    with pytest.raises(InputError, match="cannot be read as CSV"):
        _ = Results(tmp_path).jobs
