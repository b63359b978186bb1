"""Explanations of jobs in a report."""

from __future__ import annotations

from html import escape

import pandas as pd
import pytest

from batkube.outputs.explain.explanation import Explainer
from batkube.outputs.explain.text import lines_of
from batkube.outputs.report.stories import selected_jobs, stories_section
from batkube.outputs.results import Results


def test_a_story_has_the_words_of_explain(runs: list[Results]) -> None:
    section = stories_section(runs[1])

    assert section is not None
    longest = runs[1].jobs.sort_values("waiting_time", ascending=False, kind="stable").iloc[0]
    lines = lines_of(Explainer(runs[1].path).explain(f"w0!{longest['job_id']}"))
    assert escape("\n".join(lines), quote=False) in section.content


def test_jobs_that_never_started_come_first_then_the_longest_waits_then_failures(small: Results) -> None:
    jobs = pd.concat([small.jobs, small.jobs.head(1).assign(job_id="4", starting_time=None, waiting_time=None)])
    jobs = jobs.reset_index(drop=True)

    assert selected_jobs(jobs)["job_id"].tolist() == ["4", "2", "3"]
    assert jobs.loc[1, "final_state"] == "COMPLETED_KILLED"


def test_files_without_a_journal_have_no_stories(small: Results) -> None:
    assert stories_section(small) is None


def test_the_stories_of_a_large_run_are_left_to_the_command(
    runs: list[Results], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batkube.outputs.report.stories._MAX_BYTES", 1000)

    section = stories_section(runs[1])

    assert section is not None
    assert "The run is large: <code>batkube explain DIR NAME</code>" in section.content
