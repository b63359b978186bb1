"""Seeds as workloads: each seed is a replicate, and all schedulers have the same ones."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import batkube
from batkube.kernel.errors import InputError


def test_each_seed_of_an_experiment_is_another_workload_and_the_same_for_all_schedulers(tmp_path: Path) -> None:
    experiment = batkube.experiment(
        {
            "base": {"workload": {"generate": "lublin", "jobs": 30, "machines": 16}, "platform": "16x1"},
            "axes": {"scheduler": ["policy:fcfs", "policy:easy"]},
            "seeds": 3,
        },
        tmp_path / "out",
        jobs=1,
    )

    jobs = {(run["axes"]["scheduler"], run["seed"]): experiment.run(run["run"]).jobs for run in experiment.runs}
    submits = {key: tuple(frame["submission_time"]) for key, frame in jobs.items()}
    assert len(set(submits.values())) == 3
    for seed in range(3):
        assert submits["policy:fcfs", seed] == submits["policy:easy", seed]
    assert len({run["digest"] for run in experiment.runs if run["axes"]["scheduler"] == "policy:fcfs"}) == 3


def test_the_manifest_contains_the_recipe_of_the_workload(tmp_path: Path) -> None:
    run = batkube.run(workload={"generate": "burst", "jobs": 4}, platform="2x1", seed=3, out=tmp_path / "run")

    assert run.manifest["scenario"]["workload"] == [{"generate": "burst", "jobs": 4}]
    assert run.manifest["seed"] == 3
    assert len(run.jobs) == 4


def test_a_trace_is_resampled_from_the_experiment_files_folder(tmp_path: Path) -> None:
    (tmp_path / "trace.swf").write_text(
        "".join(f"{n} {n * 60} 0 100 1 -1 -1 1 200 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 61)), encoding="utf-8"
    )
    file = tmp_path / "experiment.yaml"
    file.write_text(
        "base:\n  workload:\n    resample: trace.swf\n    window: 20jobs\n    seed: ${seed}\n"
        "  platform: 4x1\nseeds: 2\n",
        encoding="utf-8",
    )

    experiment = batkube.experiment(file, tmp_path / "out", jobs=1)

    assert not experiment.failures
    assert [len(experiment.run(run["run"]).jobs) for run in experiment.runs] == [20, 20]


def test_an_unquoted_reference_in_braces_is_rejected_with_the_correct_spelling(tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text("base:\n  workload: {generate: lublin, seed: ${seed}}\n  platform: 4x1\n", encoding="utf-8")

    with pytest.raises(InputError) as error:
        batkube.experiment(file, tmp_path / "out")

    assert "or leave it out" in str(error.value)


def test_a_report_describes_the_overlap_of_windows_of_a_trace(tmp_path: Path) -> None:
    """Of sixty jobs, windows of twenty have some in common; by what the files say of the jobs, not by the draws."""
    (tmp_path / "trace.swf").write_text(
        "".join(f"{n} {n * 60} 0 100 1 -1 -1 1 200 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 61)), encoding="utf-8"
    )
    base = {"workload": {"resample": str(tmp_path / "trace.swf"), "window": "20jobs"}, "platform": "4x1"}
    axes = {"scheduler": ["policy:fcfs", "policy:sjf"]}
    experiment = batkube.experiment({"base": base, "axes": axes, "seeds": 4}, tmp_path / "out", jobs=1)
    first = [experiment.run(run["run"]) for run in experiment.runs if run["axes"]["scheduler"] == "policy:fcfs"]
    windows = [set(run.jobs["job_id"]) for run in first]
    common = [len(first & second) for first, second in itertools.combinations(windows, 2)]

    page = experiment.report().read_text(encoding="utf-8")

    assert sum(count > 0 for count in common) not in (0, 6)
    remark = f"{sum(count > 0 for count in common)} of 6 pairs of windows of"
    assert remark in page
    assert f"have jobs in common, up to {max(common) * 5} % of them" in page


def test_disjoint_windows_share_no_job_and_repeated_ones_count_once(tmp_path: Path) -> None:
    """Sixty jobs are three windows of twenty: three seeds have one each, the fourth the same as the first."""
    (tmp_path / "trace.swf").write_text(
        "".join(f"{n} {n * 60} 0 100 1 -1 -1 1 200 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 61)), encoding="utf-8"
    )
    for window in ("20jobs", "19min"):
        recipe = {"resample": str(tmp_path / "trace.swf"), "window": window, "overlap": False}
        experiment = batkube.experiment(
            {"base": {"workload": recipe, "platform": "1x1"}, "seeds": {"from": 7, "to": 10}}, tmp_path / window, jobs=1
        )
        windows = [set(experiment.run(run["run"]).jobs["job_id"]) for run in experiment.runs]
        page = experiment.report().read_text(encoding="utf-8")

        assert windows[0] == windows[3]
        assert not any(first & second for first, second in itertools.combinations(windows[:3], 2))
        assert "have jobs in common" not in page
        assert "3 of 4 runs count" in page


def test_a_report_explains_its_columns(tmp_path: Path) -> None:
    base = {"workload": {"generate": "lublin", "jobs": 30, "machines": 16}, "platform": "16x1"}
    page = batkube.experiment({"base": base, "seeds": 2}, tmp_path / "out", jobs=1).report().read_text(encoding="utf-8")

    assert "bounded slowdown is max(1, (wait + run time) / max(run time, τ)), with τ = 10 s" in page
    assert "Utilisation is the share of the existing machines" in page
    assert "Fairness by user is" not in page  # these jobs have no users
