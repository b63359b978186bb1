"""Columns of Jobs."""

from __future__ import annotations

import pytest
from tests.api.groups.printed_cells import printed


@pytest.mark.parametrize(
    ("conditions", "deleted", "word"),
    [
        ([("Complete", "True")], True, "Complete"),
        ([("Failed", "False"), ("Failed", "True")], False, "Running"),
        ([("Suspended", "True")], True, "Terminating"),
        ([("Suspended", "True")], False, "Suspended"),
        ([("SuccessCriteriaMet", "True"), ("FailureTarget", "True")], False, "FailureTarget"),
    ],
)
def test_the_status_of_a_job_follows_its_conditions(
    conditions: list[tuple[str, str]], deleted: bool, word: str
) -> None:
    metadata = {"name": "j", **({"deletionTimestamp": "2026-11-15T20:39:00Z"} if deleted else {})}
    listed = [{"type": kind, "status": status} for kind, status in conditions]

    cells = printed("jobs.batch", {"metadata": metadata, "spec": {"parallelism": 3}, "status": {"conditions": listed}})

    assert (cells["Status"], cells["Completions"], cells["Duration"]) == (word, "0/1 of 3", "")
