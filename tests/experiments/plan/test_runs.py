"""A run's name stands for all that decides its result, and for nothing else."""

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
    raise AssertionError(f"{name} is not to be built")


def names(study: Study, **words: object) -> list[str]:
    plan = make_plan(read_experiment(study.file(**words)), no_builder)
    return [run.name for run in plan.runs]


def test_a_name_says_what_is_special_about_the_run(study: Study) -> None:
    axes = {"scheduler": ["policy:fcfs"], "size": {"key": "platform", "values": {"2 machines": "2x1"}}}

    assert [name[:-11] for name in names(study, axes=axes)] == ["fcfs-2-machines"]
    assert [name[:-11] for name in names(study, axes=axes, seeds=2)] == ["fcfs-2-machines-s0", "fcfs-2-machines-s1"]
    assert [name[:-11] for name in names(study, repeats=2)] == ["r1", "r2"]
    assert [len(name) for name in names(study)] == [10]


def test_long_labels_are_cut_and_the_hash_tells_them_apart(study: Study) -> None:
    values = {f"{'x' * 100}{number}": "2x1" for number in range(3)}

    found = names(study, axes={"size": {"key": "platform", "values": values}})

    assert len(set(found)) == 3
    assert all(len(name) <= 71 for name in found)


@pytest.mark.parametrize("key", ["seed", "patience", "decision-cost", "on-eviction"])
def test_every_key_of_the_scenario_counts(study: Study, key: str) -> None:
    other = {"seed": 1, "patience": "7s", "decision-cost": "model:1ms", "on-eviction": "fail"}

    assert names(study, base={key: other[key]}) != names(study)


def test_the_content_of_every_input_file_counts(study: Study) -> None:
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


def test_the_content_of_files_that_inputs_name_counts(study: Study) -> None:
    """Batsim's usage traces, and the tables that a trace is read with."""
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


def planned(study: Study, program: Path, **words: object) -> tuple[Plan, list[str]]:
    """Plan an experiment whose schedulers are all `program`; return also what was asked to be built."""
    asked: list[str] = []

    def build(name: str, _: Catalogue) -> Path:
        asked.append(name)
        return program

    return make_plan(read_experiment(study.file(**words)), build), asked


def test_a_scheduler_is_built_once_before_all_runs_and_counts_by_its_content(study: Study) -> None:
    program = study.folder / "program"
    program.write_text("one")
    axes = {"scheduler": ["kube-scheduler@1.34.4", "kube-scheduler@1.33.13"]}

    first, asked = planned(study, program, axes=axes, seeds=5)
    program.write_text("two")
    second, _ = planned(study, program, axes=axes, seeds=5)

    assert asked == ["kube-scheduler@1.34.4", "kube-scheduler@1.33.13"]
    assert first.runs[0].programs == {"kube-scheduler@1.34.4": program}
    assert [run.name for run in first.runs] != [run.name for run in second.runs]


def test_runs_whose_time_follows_the_real_one_are_done_one_at_a_time(study: Study) -> None:
    program = study.folder / "program"
    program.write_text("one")
    scheduler = {"scheduler": "kube-scheduler@1.34.4"}

    exact, _ = planned(study, program, base=scheduler)
    mixed, _ = planned(study, program, base=scheduler, axes={"time": ["exact", "paced:timeout=50ms"]})

    assert default_jobs(mixed) == 1
    assert default_jobs(exact) >= 1


@pytest.mark.parametrize("missing", ["workload", "platform"])
def test_a_part_that_is_missing_is_to_be_added_to_the_file(missing: str) -> None:
    given = {key: value for key, value in {"workload": "w.json", "platform": "2x1"}.items() if key != missing}

    with pytest.raises(InputError, match=f"no {missing} given\n  remedy: add `{missing}` below `base`"):
        make_plan(read_experiment({"base": given}), no_builder)
