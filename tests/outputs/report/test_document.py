"""The report of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.outputs.report.reported_runs import MANIFEST, ROWS, page_of

from batkube.outputs.report.document import write_run_report
from report_pages import read_page


def test_a_report_has_metrics_and_everything_to_repeat_the_run(make_run: Any) -> None:  # noqa: ANN401
    results = make_run(ROWS, manifest=MANIFEST)
    (results.path / "fidelity.json").write_text("[]")

    page = page_of(results)

    numbers = {row[0]: row[1] for row in page.tables[0][1:]}
    assert (numbers["makespan"], numbers["mean wait"], numbers["jobs that succeeded"]) == ("300.00", "33.33", "3")
    for words in (
        "3 of 3",
        "5 min",
        "batkube run --workload 'my jobs.json'",
        "0123456789abcdef",
        "cd" * 32,
        "ef" * 32,
        "v1.34.4",
        "1.50 s real",
        "Everything that the run requested is modelled",
        "job 3 (w0)",  # a hover text
        "ada",
    ):
        assert words in page.text, words
    assert page.tags.count("svg") == 4


def test_the_report_of_a_failed_run_begins_with_the_failure(make_run: Any) -> None:  # noqa: ANN401
    failed = {**MANIFEST, "result": "failed", "failure": "kube-scheduler ended\nwith code 2", "jobs": 5}

    page = page_of(make_run(ROWS, manifest=failed))

    assert "This run failed: 2 of its 5 jobs have no outcome." in page.text
    assert page.text.index("with code 2") < page.text.index("makespan")


def test_a_bare_jobs_file_has_a_report(make_run: Any, tmp_path: Path) -> None:  # noqa: ANN401
    jobs = make_run(ROWS).jobs_path.rename(tmp_path / "theirs_jobs.csv")

    target = write_run_report(jobs, tmp_path / "report.html")

    page = read_page(target.read_text(encoding="utf-8"))
    assert page.problems == []
    assert "it is unknown how they were run" in page.text
    assert target.read_bytes() == write_run_report(jobs, tmp_path / "again.html").read_bytes()


def test_a_run_without_finished_jobs_has_a_report(make_run: Any) -> None:  # noqa: ANN401
    page = page_of(make_run([("1", 0, None, None, "", {"final_state": "REJECTED"})], manifest=MANIFEST))

    assert "0 of 1" in page.text
    assert "Not drawn: nothing ran" in page.text
