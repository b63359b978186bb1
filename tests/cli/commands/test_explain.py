"""`batkube explain`."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_in_process, write_study
from tests.conftest import REPOSITORY, Simulate

from batkube.policies import Evict, Policy, Start, Wait

EXAMPLE = str(REPOSITORY / "examples" / "backfilling" / "scenario.yaml")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that has the run `out` of the example, with reasons."""
    folder = tmp_path_factory.mktemp("explained")
    assert run_in_process(folder, "run", EXAMPLE, "--explain", "--out", "out", "--quiet").returncode == 0
    return folder


def explain(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    result: subprocess.CompletedProcess[str] = run_in_process(folder, "explain", *arguments)
    return result


def explained(folder: Path, name: str, run: str = "out") -> dict[str, Any]:
    result = explain(folder, run, name, "--json")
    assert result.returncode == 0, result.stderr
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def test_a_backfilled_job_has_the_policys_own_reason(folder: Path) -> None:
    output = explain(folder, "out", "narrow").stdout

    assert "backfilling: it was to end by 1 min 2 s, before the start of w0!wide" in output


def test_a_job_may_be_named_with_or_without_its_workload(folder: Path) -> None:
    assert explained(folder, "wide") == explained(folder, "w0!wide")
    assert explained(folder, "wide")["kind"] == "job"
    assert explained(folder, "w0-wide-3")["kind"] == "pod"
    assert explained(folder, "node-3")["kind"] == "node"


def test_a_job_that_fitted_waited_for_the_reservation_of_the_first_one(folder: Path) -> None:
    periods = explained(folder, "too-long")["executions"][0]["periods"]

    assert [period["cause"] for period in periods] == ["resources", "reservation", "resources"]
    assert (periods[1]["first"], periods[1]["fitting"], periods[1]["needed"]) == ("w0!wide", 3, 3)


def test_a_node_lists_what_was_on_it(folder: Path) -> None:
    node = explained(folder, "node-7")

    assert [stay["name"] for stay in node["stays"]] == ["w0!narrow", "w0!wide"]
    assert node["idle"] == 130 * 10**9
    assert [(use["resource"], round(use["mean"], 3)) for use in node["uses"]] == [("batkube.io/machine", 0.435)]


def test_without_recorded_reasons_causes_are_derived_and_the_output_says_so(folder: Path) -> None:
    assert run_in_process(folder, "run", EXAMPLE, "--out", "plain", "--quiet").returncode == 0
    recorded, derived = explained(folder, "too-long"), explained(folder, "too-long", "plain")

    assert "causes are derived from its journal" in explain(folder, "plain", "wide").stdout
    assert recorded["executions"][0]["periods"] == derived["executions"][0]["periods"]
    assert derived["executions"][0]["reservations"] == []


def test_an_unknown_name_is_answered_with_similar_ones(folder: Path) -> None:
    result = explain(folder, "out", "w0!narow")

    assert result.returncode == 2
    assert "w0!narow: is not a job, pod or node of this run" in result.stderr
    assert "w0!narrow" in result.stderr


def test_an_ambiguous_name_is_rejected(folder: Path) -> None:
    workload = str(REPOSITORY / "examples" / "backfilling" / "workload.json")
    command = ("run", "--workload", workload, "--workload", workload, "--platform", "10x1", "--out", "two", "--quiet")
    assert run_in_process(folder, *command).returncode == 0

    assert "2 jobs have this name: w0!wide, w1!wide" in explain(folder, "two", "wide").stderr


@pytest.mark.parametrize(("omitted", "kept"), [("journal.jsonl", "pods"), ("pods.csv", "journal")])
def test_a_run_without_its_journal_or_pods_is_rejected(omitted: str, kept: str, folder: Path, tmp_path: Path) -> None:
    run_in_process(tmp_path, "run", EXAMPLE, "--outputs", kept, "--out", "out", "--quiet")
    result = explain(tmp_path, "out", "wide")

    assert result.returncode == 2
    assert f"{omitted} was left out of this run" in result.stderr

    shutil.copytree(folder / "out", tmp_path / "damaged")
    (tmp_path / "damaged" / omitted).unlink()
    assert explain(tmp_path, "damaged", "wide").returncode == 2


def test_damaged_reasons_are_rejected_with_their_line(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "out", tmp_path / "out")
    (tmp_path / "out" / "reasons.jsonl").write_text('{"t":0,"event":"wait","job":"w0!wide"}\n{"t":')

    result = explain(tmp_path, "out", "wide")
    assert result.returncode == 2
    assert "reasons.jsonl" in result.stderr
    assert "line 2" in result.stderr


def test_the_folder_of_an_experiment_is_rejected_with_the_name_of_a_run(tmp_path: Path) -> None:
    write_study(tmp_path, "policy:fcfs")
    run_in_process(tmp_path, "experiment", "e.yaml", "--out", "study", "--no-report", "--quiet")
    result = explain(tmp_path, "study", "w0!0")

    assert result.returncode == 2
    assert "is the folder of an experiment" in result.stderr
    assert "study/runs/" in result.stderr


class Explaining(Policy):
    """Explains itself in texts."""

    def decide(self, view):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
        for job in sorted(view.queue, key=lambda job: -job.priority):
            for running in [running for running in view.running if running.job.priority < job.priority]:
                yield Evict(running.job, "it is less important")
            placement = view.free.fit(job)
            if placement is None:
                yield Wait(job, "all seats are taken")
            else:
                yield Start(job, placement, "there is a seat")


def test_the_texts_of_a_users_policy_are_shown(simulate: Simulate, tmp_path: Path) -> None:
    jobs = [
        {"id": "a", "subtime": 0, "res": 4, "profile": "d"},
        {"id": "b", "subtime": 1, "res": 4, "profile": "d"},
        {"id": "c", "subtime": 2, "res": 4, "profile": "d", "priority": 5},
    ]
    simulate(jobs, {"d": {"type": "delay", "delay": 10}}, scheduler=Explaining, explain=True)

    assert explained(tmp_path, "a")["executions"][0]["start_reason"] == "there is a seat"
    assert "all seats are taken" in explain(tmp_path, "out", "b").stdout
    assert "evicted: it is less important" in explain(tmp_path, "out", "a").stdout
