"""Waits by user and by size class."""

from __future__ import annotations

import pytest

from batkube.outputs.measures.metrics import finished_jobs
from batkube.outputs.report.waits import waits_by_class, waits_by_user, waits_section
from batkube.outputs.results import Results


def test_classes_have_the_means_of_the_metrics(runs: list[Results]) -> None:
    for run in runs:
        waits = waits_by_class(finished_jobs(run.jobs))

        assert len(waits) > 1
        for name, values in waits.items():
            column = run.metrics.columns[f"mean_waiting_time_{name.replace(' ', '_')}"]
            assert column == pytest.approx(values.mean(), abs=1e-6)


def test_users_beyond_the_eight_with_most_jobs_share_a_row(run: Results) -> None:
    waits = waits_by_user(finished_jobs(run.jobs))

    assert list(waits)[-1] == "4 others"
    assert [len(values) for values in waits.values()] == [4] * 8 + [16]
    section = waits_section(run)
    assert section is not None
    assert "user-0 (4)" in section.content
    assert "4 others (16)" in section.content
