"""The name of a run depends on everything that affects its result, and on nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.experiments.conftest import Study

from batkube.experiments.description.experiment_file import read_experiment
from batkube.experiments.plan.runs import Plan, make_plan
from batkube.experiments.running.executors import default_jobs
from batkube.kernel.errors import InputError
from batkube.schedulers.catalogue import Catalogue

POLICY = """
from batkube.policies.interface import Policy
class P(Policy):
    def decide(self, view):
        yield from ()
"""


def no_builder(name: str, _: Catalogue) -> Path:
    raise AssertionError(f"{name} must not be built")


def names(study: Study, **keys: object) -> list[str]:
    plan = make_plan(read_experiment(study.file(**keys)), no_builder)
    return [run.name for run in plan.runs]


def test_the_name_of_a_run_contains_its_labels(study: Study) -> None:
    axes = {"scheduler": ["policy:fcfs"], "size": {"key": "platform", "values": {"2 machines": "2x1"}}}

    assert [name[:-11] for name in names(study, axes=axes)] == ["fcfs-2-machines"]
    assert [name[:-11] for name in names(study, axes=axes, seeds=2)] == ["fcfs-2-machines-s0", "fcfs-2-machines-s1"]
    assert [name[:-11] for name in names(study, repeats=2)] == ["r1", "r2"]
    assert [len(name) for name in names(study)] == [10]


def test_long_labels_are_shortened_and_the_hash_keeps_names_unique(study: Study) -> None:
    values = {f"{'x' * 100}{number}": "2x1" for number in range(3)}

    run_names = names(study, axes={"size": {"key": "platform", "values": values}})

    assert len(set(run_names)) == 3
    assert all(len(name) <= 71 for name in run_names)


@pytest.mark.parametrize("key", ["seed", "patience", "decision-cost", "on-eviction"])
def test_every_key_of_the_scenario_is_part_of_the_name(study: Study, key: str) -> None:
    other = {"seed": 1, "patience": "7s", "decision-cost": "model:1ms", "on-eviction": "fail"}

    assert names(study, base={key: other[key]}) != names(study)


def test_the_content_of_every_input_file_is_part_of_the_name(study: Study) -> None:
    (study.folder / "l.yaml").write_text("notice: 1\n")
    (study.folder / "p.py").write_text(POLICY)
    base = {"latencies": "l.yaml", "scheduler": "policy:./p.py:P"}
    before = names(study, base=base)
    assert names(study, base=base) == before

    for changed in ("l.yaml", "p.py", "w.json"):
        with (study.folder / changed).open("a") as file:
            file.write("\n")
        after = names(study, base=base)
        assert after != before, changed
        before = after


def test_the_content_of_referenced_files_is_part_of_the_name(study: Study) -> None:
    """Referenced files are usage traces of Batsim, and second tables of cloud traces."""
    (study.folder / "batch_instance.csv").write_text("i,M1,j_1,1,Terminated,10,13,m_7,1,1,90,110,0.3,0.4\n")
    (study.folder / "batch_task.csv").write_text("M1,1,j_1,1,Terminated,10,13,100,0.5\n")
    (study.folder / "manifest.txt").write_text("use.txt\n")
    (study.folder / "use.txt").write_text("0 m_usage 0.5 1e6\n")
    profiles = {"u": {"type": "usage_trace", "trace": "manifest.txt"}}
    jobs = [{"id": "1", "subtime": 0, "res": 1, "profile": "u"}]
    (study.folder / "traces.json").write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}))

    for workload, others in (("batch_instance.csv", ["batch_task.csv"]), ("traces.json", ["manifest.txt", "use.txt"])):
        base = {"workload": workload, "platform": "2x4,8Gi"}
        before = names(study, base=base)
        for changed in others:
            with (study.folder / changed).open("a") as file:
                file.write("\n")
            after = names(study, base=base)
            assert after != before, changed
            before = after


def plan_with(study: Study, program: Path, **keys: object) -> tuple[Plan, list[str]]:
    """Plan an experiment whose schedulers are all `program`; return also the names of the built schedulers."""
    built: list[str] = []

    def build(name: str, _: Catalogue) -> Path:
        built.append(name)
        return program

    return make_plan(read_experiment(study.file(**keys)), build), built


def test_a_scheduler_is_built_once_before_all_runs_and_its_hash_is_part_of_run_names(study: Study) -> None:
    program = study.folder / "program"
    program.write_text("one")
    axes = {"scheduler": ["kube-scheduler@1.34.4", "kube-scheduler@1.33.13"]}

    first, built = plan_with(study, program, axes=axes, seeds=5)
    program.write_text("two")
    second, _ = plan_with(study, program, axes=axes, seeds=5)

    assert built == ["kube-scheduler@1.34.4", "kube-scheduler@1.33.13"]
    assert first.runs[0].programs == {"kube-scheduler@1.34.4": program}
    assert [run.name for run in first.runs] != [run.name for run in second.runs]


def test_runs_that_follow_the_real_time_are_executed_one_at_a_time(study: Study) -> None:
    program = study.folder / "program"
    program.write_text("one")
    scheduler = {"scheduler": "kube-scheduler@1.34.4"}

    exact, _ = plan_with(study, program, base=scheduler)
    mixed, _ = plan_with(study, program, base=scheduler, axes={"time": ["exact", "paced:timeout=50ms"]})

    assert default_jobs(mixed) == 1
    assert default_jobs(exact) >= 1


@pytest.mark.parametrize("missing", ["workload", "platform"])
def test_a_missing_required_key_is_reported_with_where_to_add_it(missing: str) -> None:
    base = {key: value for key, value in {"workload": "w.json", "platform": "2x1"}.items() if key != missing}

    with pytest.raises(InputError, match=f"has no {missing}\n  remedy: add `{missing}` below `base`"):
        make_plan(read_experiment({"base": base}), no_builder)
