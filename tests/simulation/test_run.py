"""The Python interface: `import batkube` gives the results of the command line as objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import batkube
from batkube.policies import Decision, Policy, Start, View
from batkube.scenarios.keys import KEYS

if TYPE_CHECKING:
    from conftest import Simulate

PROFILES = {"d": {"type": "delay", "delay": 10}}
JOBS = [{"id": str(number), "subtime": 0, "res": 1, "profile": "d"} for number in range(6)]


def test_a_run_has_data_frames_and_a_gantt_chart(simulate: Simulate) -> None:
    run = simulate(JOBS, PROFILES, platform="4x1")

    assert len(run.jobs) == len(run.pods) == 6
    assert run.schedule["makespan"] == 20
    assert list(run.machine_states["nb_computing"]) == [4, 2, 0]
    assert run.manifest["scheduler"] == "policy:fcfs"
    assert run.gantt().axes


def test_without_out_the_folder_is_deleted_with_the_run(simulate: Simulate) -> None:
    run = simulate(JOBS, PROFILES, out=None)
    folder = run.path
    assert (folder / "jobs.csv").is_file()

    del run
    gc.collect()

    assert not folder.exists()


def test_several_workloads_run_together_and_keep_their_names(simulate: Simulate, tmp_path: Path) -> None:
    simulate(JOBS, PROFILES)
    workload = tmp_path / "workload.json"

    run = batkube.run(workload=[workload, workload], platform="4x1", out=tmp_path / "both")

    assert list(run.jobs["workload_name"]) == ["w0"] * 6 + ["w1"] * 6
    assert run.schedule["makespan"] == 30


def test_bad_input_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(batkube.InputError, match=r"absent\.json"):
        batkube.run(workload=tmp_path / "absent.json", platform="4x1")


def test_all_exported_names_exist() -> None:
    assert all(hasattr(batkube, name) for name in batkube.__all__)


def test_the_manifest_contains_the_scenario_with_all_keys(simulate: Simulate) -> None:
    run = simulate(JOBS, PROFILES, seed=4, scheduler="policy:sjf")

    scenario = run.manifest["scenario"]

    assert tuple(scenario) == KEYS
    assert (scenario["seed"], scenario["scheduler"]) == (4, "policy:sjf")
    assert len(run.manifest["inputs"][0]["sha256"]) == 64


class NarrowestFirst(Policy):
    """Starts the narrowest job first, and `most` jobs in total."""

    def __init__(self, most: int = 1000) -> None:
        self.most = most

    def decide(self, view: View) -> Iterator[Decision]:
        """Start the jobs that fit."""
        for job in sorted(view.queue, key=lambda job: job.size):
            placement = view.free.fit(job)
            if placement is not None and self.most:
                self.most -= 1
                yield Start(job, placement)


WIDE_FIRST = [{"id": str(number), "subtime": 0, "res": 4 - number, "profile": "d"} for number in range(4)]


def test_a_policy_may_be_a_class_or_an_instance(simulate: Simulate) -> None:
    of_class = simulate(WIDE_FIRST, PROFILES, scheduler=NarrowestFirst)
    first = of_class.manifest
    policy = NarrowestFirst(most=4)
    digests = {simulate(WIDE_FIRST, PROFILES, scheduler=policy).manifest["digest"] for _ in range(2)}

    assert list(of_class.jobs.sort_values("starting_time", kind="stable")["requested_number_of_resources"])[:2] == [
        2,
        1,
    ]
    assert first["scheduler"] == f"policy:{__name__}.NarrowestFirst"
    assert digests == {first["digest"]}
    assert policy.most == 4  # runs have copies, or the second would have started nothing


def test_scheduler_args_require_a_class(simulate: Simulate) -> None:
    assert simulate(WIDE_FIRST, PROFILES, scheduler=NarrowestFirst, scheduler_args={"most": 4}).schedule["nb_jobs"] == 4
    with pytest.raises(batkube.InputError, match=r"'colour'.*is unknown"):
        simulate(WIDE_FIRST, PROFILES, scheduler=NarrowestFirst, scheduler_args={"colour": "red"})
    with pytest.raises(batkube.InputError, match="is an instance"):
        simulate(WIDE_FIRST, PROFILES, scheduler=NarrowestFirst(), scheduler_args={"most": 4})


@pytest.mark.parametrize("scheduler", [int, 7, Policy])
def test_an_object_that_is_not_a_policy_is_rejected(simulate: Simulate, scheduler: Any) -> None:  # noqa: ANN401 - anything
    with pytest.raises(batkube.InputError, match=r"which is not a scheduler|no method decide"):
        simulate(JOBS, PROFILES, scheduler=scheduler)


def test_counts_are_integers(simulate: Simulate) -> None:
    run = simulate(JOBS, PROFILES)

    assert {str(run.jobs[name].dtype) for name in ("requested_number_of_resources", "success", "evictions")} == {
        "Int64"
    }
    assert str(run.pods["attempts"].dtype) == "Int64"
    assert str(run.machine_states["nb_computing"].dtype) == "int64"
    assert type(run.schedule["nb_jobs"]) is int
    assert type(run.schedule["makespan"]) is float


def test_runs_and_comparisons_have_html_and_text_representations(simulate: Simulate, tmp_path: Path) -> None:
    fcfs = simulate(WIDE_FIRST, PROFILES, out=tmp_path / "fcfs")
    narrow = simulate(WIDE_FIRST, PROFILES, scheduler=NarrowestFirst, out=tmp_path / "<b>narrow")
    comparison = batkube.compare(fcfs, str(narrow.path))

    assert comparison.frame.loc["nb_jobs"].to_dict() == {"fcfs": 4.0, "<b>narrow": 4.0}
    assert "mean wait" in fcfs._repr_html_()
    page = comparison._repr_html_()
    assert "&lt;b&gt;narrow, ±%" in page
    assert "<b>narrow" not in page
    assert "mean wait" in repr(comparison)
    assert repr(batkube.Results(tmp_path / "fcfs")) == f"<Results of policy:fcfs in {tmp_path / 'fcfs'}>"
    assert narrow.report(tmp_path / "narrow.html").read_text().startswith("<!DOCTYPE html>")
    assert fcfs.gantt()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_a_comparison_needs_at_least_two_runs(simulate: Simulate) -> None:
    run = simulate(JOBS, PROFILES)
    with pytest.raises(batkube.InputError, match="needs at least two runs"):
        batkube.compare(run)
    with pytest.raises(batkube.InputError, match="is not the index of one of the 2 runs"):
        batkube.compare(run, run, baseline=2)


def test_progress_is_printed_only_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batkube.simulation.progress._LINE_INTERVAL_S", 0.0)
    workload = {"generate": "spaced", "jobs": 40, "interval": "10s"}

    batkube.run(workload=workload, platform="2x1", out=tmp_path / "silent")
    assert capsys.readouterr().err == ""

    batkube.run(workload=workload, platform="2x1", out=tmp_path / "aloud", progress=True)
    assert " of 40 jobs ended, " in capsys.readouterr().err
