"""A scheduler with impossible schedules, rejected jobs or failed runs is never reported as the best."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

WORKLOAD = {
    "nb_res": 4,
    "jobs": [{"id": str(number), "subtime": 0, "res": 4, "profile": "d", "walltime": 20} for number in range(6)],
    "profiles": {"d": {"type": "delay", "delay": 10}},
}
#: Starts every job at once on all machines, even if they are busy, so that no job waits.
GREEDY = """
from collections.abc import Iterator
from batkube.policies import Decision, Policy, Start, View

class Greedy(Policy):
    def decide(self, view: View) -> Iterator[Decision]:
        everywhere = view.free.fit(view.queue[0]) if view.queue else None
        for job in list(view.queue):
            yield Start(job, everywhere)
"""
#: Rejects every job that would have to wait, so that no job waits.
PICKY = """
from collections.abc import Iterator
from batkube.policies import Decision, Policy, Reject, Start, View

class Picky(Policy):
    def decide(self, view: View) -> Iterator[Decision]:
        for job in list(view.queue):
            placement = view.free.fit(job)
            yield Reject(job, "busy") if placement is None else Start(job, placement)
"""


#: Raises an error when a job would have to wait, so that no job of a completed run waits.
FRAIL = PICKY.replace("Picky", "Frail").replace('Reject(job, "busy")', "1 / 0")


def batkube(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "batkube", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a workload and the two policies."""
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    (tmp_path / "greedy.py").write_text(GREEDY)
    (tmp_path / "picky.py").write_text(PICKY)
    return tmp_path


RUN = ("run", "--workload", "w.json", "--platform", "4x1", "--quiet")


def test_violations_are_printed_even_with_quiet_and_fail_the_run_with_strict(folder: Path) -> None:
    greedy = (*RUN, "--scheduler", "policy:greedy.py:Greedy")
    result = batkube(*greedy, "--out", "greedy", cwd=folder)
    strict = batkube(*greedy, "--strict", "--out", "strict", cwd=folder)
    valid = batkube(*RUN, "--strict", "--out", "fcfs", cwd=folder)

    assert result.returncode == 0
    assert "violation: scheduler: bound a pod to a node without room for it" in result.stderr
    assert (
        "nb_jobs_finished=1\nnb_jobs_failed=5\nnb_jobs_killed=0\nnb_jobs_rejected=0\nnb_violations=5\n" in result.stdout
    )
    assert strict.returncode == 1
    assert (folder / "strict" / "manifest.json").is_file()
    assert (valid.returncode, valid.stderr) == (0, "")


def test_comparisons_and_reports_begin_with_the_violations(folder: Path) -> None:
    batkube(*RUN, "--out", "fcfs", cwd=folder)
    batkube(*RUN, "--scheduler", "policy:greedy.py:Greedy", "--out", "greedy", cwd=folder)

    comparison = batkube("compare", "fcfs", "greedy", cwd=folder)
    report = batkube("report", "greedy", "-o", "greedy.html", cwd=folder)

    assert comparison.stdout.startswith("warning: greedy violated rules of every cluster 5 times")
    assert "warning: greedy lost jobs: 5 failed of 6; means are of the 1 that started and ended" in comparison.stdout
    assert "violations" in comparison.stdout
    assert report.returncode == 0
    page = (folder / "greedy.html").read_text()
    assert "violated rules of every cluster 5 times" in page
    assert "This run lost jobs: 5 failed of 6" in page


def test_the_number_of_failed_jobs_is_printed_next_to_the_means(folder: Path) -> None:
    loud = tuple(word for word in RUN if word != "--quiet")
    result = batkube(*loud, "--scheduler", "policy:greedy.py:Greedy", "--out", "greedy", cwd=folder)
    valid = batkube(*loud, "--out", "fcfs", cwd=folder)

    means = [line for line in result.stdout.splitlines() if "mean wait" in line or "mean slowdown" in line]
    assert len(means) == 2
    assert all("(5 of 6 jobs had no result)" in line for line in means)
    assert "had no result" not in valid.stdout


def test_an_experiment_does_not_mark_a_violating_scheduler_as_the_best(folder: Path) -> None:
    (folder / "e.yaml").write_text(
        "base: {workload: w.json, platform: 4x1}\n"
        "axes: {scheduler: [policy:fcfs, policy:easy, policy:greedy.py:Greedy, policy:picky.py:Picky]}\n"
    )

    result = batkube("experiment", "e.yaml", "--out", "out", "--quiet", cwd=folder)

    assert result.returncode == 0, result.stderr
    page = (folder / "out" / "report.html").read_text()
    for sign, meaning in (("✗", "violated rules of every cluster"), ("‡", "ran fewer jobs than others")):
        assert f"{sign} {meaning}, so its means are not compared" in page
        assert page.count(sign) > 1
    waits = {row["scheduler"]: row["mean_waiting_time"] for row in table(folder / "out/results.csv")}
    assert waits["policy:picky.py:Picky"] == "0.000000"
    batkube("report", "out", "--tables", "tables", "--columns", "makespan,mean_waiting_time", cwd=folder)
    assert r"\star" not in (folder / "tables/results.tex").read_text()


def test_a_scheduler_that_fails_on_hard_workloads_is_not_the_best(folder: Path) -> None:
    """Only its runs in which no job has to wait complete, with a mean wait of 0."""
    (folder / "frail.py").write_text(FRAIL)
    (folder / "e.yaml").write_text(
        "base: {workload: {generate: poisson, jobs: 8, interval: 60s, run-time: 'choice:1,400'}, platform: 4x1}\n"
        "axes: {scheduler: [policy:fcfs, policy:frail.py:Frail]}\n"
        "seeds: 12\n"
        "figures: [{kind: bar, x: scheduler, y: mean_waiting_time}]\n"
    )

    result = batkube("experiment", "e.yaml", "--out", "out", "--quiet", cwd=folder)
    batkube("report", "out", "--tables", "tables", "--columns", "mean_waiting_time", cwd=folder)

    assert result.returncode == 1
    rows = [row for row in table(folder / "out/results.csv") if "frail" in row["scheduler"]]
    completed = [row for row in rows if row["state"] == "done"]
    assert 0 < len(completed) < len(rows)
    page = (folder / "out" / "report.html").read_text()
    assert "¶ failed in runs that others completed, so its means are of other workloads and not compared" in page
    assert "policy:frail.py:Frail ¶" in page  # in the figure
    latex = (folder / "tables/results.tex").read_text()
    assert r"\star" not in latex
    assert rf"{len(completed)} of 12 & $0.00$" in latex
    standings = {row["scheduler"]: row["standing"] for row in table(folder / "tables/results.csv")}
    assert standings == {"policy:fcfs": "fair", "policy:frail.py:Frail": "partial"}
    assert not (folder / "tables/differences.csv").exists()  # no other scheduler is comparable


def test_a_comparison_marks_neither_run_as_better(folder: Path) -> None:
    batkube(*RUN, "--out", "fcfs", cwd=folder)
    for name in ("greedy", "picky"):
        batkube(*RUN, "--scheduler", f"policy:{name}.py:{name.title()}", "--out", name, cwd=folder)

    comparison = batkube("compare", "fcfs", "greedy", "picky", "--latex", "t.tex", cwd=folder).stdout
    reverse = batkube("compare", "greedy", "fcfs", cwd=folder).stdout

    (wait,) = (line for line in comparison.splitlines() if "mean wait  " in line)
    assert wait.split()[-4:] == ["0.00", "✗", "0.00", "‡"]
    assert "‡ ran fewer jobs than others, so its means are not compared\n" in comparison
    assert "✗ violated rules of every cluster, so its means are not compared\n" in comparison
    latex = (folder / "t.tex").read_text()
    assert r"fcfs & greedy$^\dagger$ & picky$^\ddagger$ \\" in latex
    assert r"$^\ddagger$ ran fewer jobs than others, so its means are not compared} \\" in latex
    assert [line.split()[-1] for line in reverse.splitlines() if "mean wait  " in line] == ["✗"]


def test_a_run_without_started_jobs_has_no_mean_values(folder: Path) -> None:
    (folder / "none.py").write_text(PICKY.replace("placement is None", "True").replace("Picky", "RejectAll"))
    result = batkube(*RUN, "--scheduler", "policy:none.py:RejectAll", "--out", "none", cwd=folder)

    values = dict(line.split("=") for line in result.stdout.splitlines())
    names = ("makespan", "mean_waiting_time", "max_waiting_time", "mean_slowdown", "mean_utilisation")
    assert {name: values[name] for name in names} == dict.fromkeys(names, "")
