"""Trace jobs under gang schedulers, each submitted in the form that the scheduler supports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import opt_in
from tests.simulation.test_gangs import check_pods

from batkube.outputs.results import Results
from batkube.scenarios.keys import make_scenario
from batkube.simulation.run import execute
from batkube.simulation.run_record import RunRecord

FORMS = [
    ("volcano@1.10.0", "pod-group"),
    ("volcano@1.10.0", "volcano-job"),
    ("kube-batch@0.5.0", "pod-group"),
    ("scheduler-plugins@0.30.6", "pod-group"),
    ("kueue@0.10.0", "kueue-job"),
]
PODS = ("volcano@1.10.0", "volcano-controller-manager@1.10.0")
PROGRAMS = {"volcano@1.10.0": PODS}
JOBS = [
    {"id": "six", "subtime": 0, "res": 6, "profile": "three", "user": "ann", "walltime": 60},
    {"id": "seven", "subtime": 0, "res": 7, "profile": "three", "priority": 3},
    {"id": "two", "subtime": 1, "res": 2, "profile": "failing", "queue": "long"},
    {"id": "short", "subtime": 2, "res": 4, "profile": "three", "walltime": 1},
]
PROFILES = {
    "three": {"type": "delay", "delay": 3, "cpu": 1},
    "failing": {"type": "delay", "delay": 2, "cpu": 1, "ret": 1},
}


def run(scheduler: str, form: str, folder: Path, **more: object) -> tuple[RunRecord, Results]:
    opt_in.require_built(*PROGRAMS.get(scheduler, (scheduler,)))
    workload = folder / "workload.json"
    workload.write_text(json.dumps({"nb_res": 4, "jobs": JOBS, "profiles": PROFILES}))
    values = {"workload": str(workload), "platform": "4x2,8Gi", "scheduler": scheduler, "submit-as": form, **more}
    record = execute(make_scenario(values, "test"), folder / "out", force=True)
    return record, Results(folder / "out")


@pytest.mark.parametrize(("scheduler", "form"), FORMS)
def test_gangs_are_placed_whole_and_leave_no_objects_behind(scheduler: str, form: str, tmp_path: Path) -> None:
    record, results = run(scheduler, form, tmp_path)

    jobs = results.jobs.set_index("job_id")
    assert jobs["final_state"].to_dict() == {
        "six": "COMPLETED_SUCCESSFULLY",
        "seven": "COMPLETED_SUCCESSFULLY",
        "two": "COMPLETED_FAILED",
        "short": "COMPLETED_WALLTIME_REACHED",
    }
    assert jobs["execution_time"].to_dict() == {"six": 3, "seven": 3, "two": 2, "short": 1}
    assert set(jobs["submitted_as"]) == {form}
    assert results.pods.groupby("job_id").size().to_dict() == {"six": 6, "seven": 7, "two": 2, "short": 4}
    check_pods(results.pods, cpus=2)
    store, start = record.simulation.world.store, record.inputs.external_programs[0].start
    if form == "pod-group":
        assert store.all(f"podgroups.{start.pod_group.partition('/')[0]}") == {}
