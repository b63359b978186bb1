"""A scheduler that does what no cluster allows looks good nowhere: not in a script, a comparison, a report."""

from __future__ import annotations

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
#: Starts every job at once on all machines, room or not: nobody waits.
GREEDY = """
from collections.abc import Iterator
from batkube.policies import Decision, Policy, Start, View

class Greedy(Policy):
    def decide(self, view: View) -> Iterator[Decision]:
        everywhere = view.free.fit(view.queue[0]) if view.queue else None
        for job in list(view.queue):
            yield Start(job, everywhere)
"""


def batkube(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "batkube", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a workload and the greedy policy."""
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    (tmp_path / "greedy.py").write_text(GREEDY)
    return tmp_path


RUN = ("run", "--workload", "w.json", "--platform", "4x1", "--quiet")


def test_violations_go_to_standard_error_also_when_quiet_and_strict_fails(folder: Path) -> None:
    greedy = (*RUN, "--scheduler", "policy:greedy.py:Greedy")
    result = batkube(*greedy, "--out", "greedy", cwd=folder)
    strict = batkube(*greedy, "--strict", "--out", "strict", cwd=folder)
    lawful = batkube(*RUN, "--strict", "--out", "fcfs", cwd=folder)

    assert result.returncode == 0
    assert "violation: scheduler: bound a pod to a node without room for it" in result.stderr
    assert (
        "nb_jobs_finished=1\nnb_jobs_failed=5\nnb_jobs_killed=0\nnb_jobs_rejected=0\nnb_violations=5\n" in result.stdout
    )
    assert strict.returncode == 1
    assert (folder / "strict" / "manifest.json").is_file()
    assert (lawful.returncode, lawful.stderr) == (0, "")


def test_a_comparison_and_a_report_say_first_that_such_a_schedule_cannot_be(folder: Path) -> None:
    batkube(*RUN, "--out", "fcfs", cwd=folder)
    batkube(*RUN, "--scheduler", "policy:greedy.py:Greedy", "--out", "greedy", cwd=folder)

    comparison = batkube("compare", "fcfs", "greedy", cwd=folder)
    report = batkube("report", "greedy", "-o", "greedy.html", cwd=folder)

    assert comparison.stdout.startswith("warning: greedy did 5 times what no cluster allows")
    assert "warning: greedy lost jobs: 5 failed of 6; means are of the 1 that started and ended" in comparison.stdout
    assert "violations" in comparison.stdout
    assert report.returncode == 0
    page = (folder / "greedy.html").read_text()
    assert "did 5 times what no cluster allows" in page
    assert "This run lost jobs: 5 failed of 6" in page


def test_failed_jobs_stand_beside_the_means_of_a_run(folder: Path) -> None:
    loud = tuple(word for word in RUN if word != "--quiet")
    result = batkube(*loud, "--scheduler", "policy:greedy.py:Greedy", "--out", "greedy", cwd=folder)
    lawful = batkube(*loud, "--out", "fcfs", cwd=folder)

    means = [line for line in result.stdout.splitlines() if "mean wait" in line or "mean slowdown" in line]
    assert len(means) == 2
    assert all("(5 of 6 jobs came to nothing)" in line for line in means)
    assert "came to nothing" not in lawful.stdout


def test_an_experiment_does_not_call_it_the_best(folder: Path) -> None:
    (folder / "e.yaml").write_text(
        "base: {workload: w.json, platform: 4x1}\n"
        "axes: {scheduler: [policy:fcfs, policy:easy, policy:greedy.py:Greedy]}\n"
    )

    result = batkube("experiment", "e.yaml", "--out", "out", "--quiet", cwd=folder)

    assert result.returncode == 0, result.stderr
    page = (folder / "out" / "report.html").read_text()
    assert "no possible schedule, so it is not compared" in page
    assert page.count("✗") > 1
