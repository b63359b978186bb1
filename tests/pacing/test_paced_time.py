"""Runs whose time is paced by the 2020 rules, or follows the real time: with plain programs and with attached ones.

Their results depend on the speed of the machine. These assertions hold on any.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path

import pytest

import batkube
from batkube import InputError, RunFailed
from batkube.scenarios.files import read_scenario_file
from batkube.scenarios.keys import make_scenario
from batkube.timing.time_rules import parse_time
from conftest import Simulate

PROFILES = {"ten": {"type": "delay", "delay": 10, "cpu": "1"}}
#: A cycle much longer than the plain scheduler needs to list a pod, even on a busy machine.
PATIENT = "paced:timeout=300ms,crash-timeout=1m"


def _jobs(*times: float) -> list[dict[str, object]]:
    return [{"id": str(number), "subtime": at, "res": 1, "profile": "ten"} for number, at in enumerate(times)]


def _notes(run: batkube.Run) -> dict[str, str]:
    return {note["message"]: note["severity"] for note in json.loads((run.path / "fidelity.json").read_text())}


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """Return the path of a scheduler without virtual time."""
    source = Path(__file__).with_name("plain_scheduler.py").read_text()
    program = tmp_path / "plain"
    program.write_text(f"#!{sys.executable} -SEu\n{source}")
    program.chmod(0o755)
    return str(program)


def test_a_plain_program_schedules_and_its_own_clock_is_noted(simulate: Simulate, plain: str) -> None:
    run = simulate(_jobs(0, 5, 1000), PROFILES, scheduler=plain, time=PATIENT)

    assert list(run.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"] * 3
    assert list(run.jobs["execution_time"]) == [10.0] * 3
    assert any("runs on the machine's clock" in message for message in _notes(run))


def test_one_decision_is_handled_per_cycle(simulate: Simulate, plain: str) -> None:
    run = simulate(_jobs(0, 0, 0, 0), PROFILES, scheduler=plain, time=f"{PATIENT},base-step=300ms")

    starts = sorted(run.jobs["starting_time"])
    # After a decision, time jumps by twice the base step while jobs are pending.
    assert all(later - earlier > 0.599 for earlier, later in itertools.pairwise(starts))
    assert int(run.schedule["cycles"]) >= int(run.schedule["decisions"]) == 4


def test_a_minimum_delay_allows_several_decisions_per_cycle(simulate: Simulate, plain: str) -> None:
    run = simulate(_jobs(0, 0, 0), PROFILES, scheduler=plain, time=f"{PATIENT},min-delay=2s,base-step=100s")

    assert max(run.jobs["starting_time"]) < 2.1


def test_a_decision_longer_than_a_cycle_is_executed_after_a_jump(simulate: Simulate, plain: str) -> None:
    run = simulate(
        _jobs(0, 100),
        PROFILES,
        scheduler=plain,
        scheduler_args={"way": "delays"},
        time="paced:timeout=5ms,base-step=20s,max-step=1h",
    )

    # The program takes a fifth of a second per decision, which spans dozens of cycles.
    second = run.jobs.set_index("job_id").loc["1"]
    assert second["starting_time"] > 100 + 40 + 80


def test_idle_time_is_skipped_in_a_few_cycles_unless_disabled(simulate: Simulate, plain: str) -> None:
    far = _jobs(0, 3600)
    fast = int(simulate(far, PROFILES, scheduler=plain, time=PATIENT).schedule["cycles"])
    steps = "paced:timeout=20ms,fast-forward=off,max-step=60s"
    slow = int(simulate(far, PROFILES, scheduler=plain, time=steps).schedule["cycles"])

    # At least fifty minutes of the simulated hour are skipped in steps of a minute.
    assert slow > 50
    assert fast < 50


def test_a_program_that_decides_nothing_counts_as_crashed(simulate: Simulate, plain: str, tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match=r"made no decision for 0.5 s .*while 2 pods waited and none ran"):
        simulate(
            _jobs(0, 0), PROFILES, scheduler=plain, scheduler_args={"way": "ignores"}, time="paced:crash-timeout=500ms"
        )

    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["result"] == "failed"


def test_the_error_of_a_program_that_exits_quotes_its_log(simulate: Simulate, plain: str) -> None:
    with pytest.raises(RunFailed, match=r"(?s)ended with exit code 4;.*no pods, please") as failed:
        simulate(_jobs(0), PROFILES, scheduler=plain, scheduler_args={"way": "exits"}, time="paced")

    assert "virtual clock" not in str(failed.value)


@pytest.mark.parametrize("admission", ["off", "on"])
def test_a_full_node_rejects_pods_only_with_admission(
    simulate: Simulate, faulty_scheduler: str, admission: str
) -> None:
    run = simulate(
        _jobs(0, 0, 0),
        PROFILES,
        scheduler=faulty_scheduler,
        scheduler_args={"way": "crowds"},
        time=f"paced:admission={admission}",
    )

    succeeded = list(run.jobs["final_state"]).count("COMPLETED_SUCCESSFULLY")
    assert succeeded == (1 if admission == "on" else 3)
    assert int(run.schedule["over_allocations"]) == (0 if admission == "on" else 2)
    assert "violation" in _notes(run).values()


def test_an_attached_program_reads_the_paced_clock(simulate: Simulate, faulty_scheduler: str) -> None:
    """The program polls once a second on its own clock, which is faster than the real one."""
    run = simulate(
        _jobs(0, 3600, 7200),
        PROFILES,
        scheduler=faulty_scheduler,
        scheduler_args={"way": "crowds"},
        time="paced:timeout=20ms,base-step=1s,max-step=60s",
    )

    assert not any("runs on the machine's clock" in message for message in _notes(run))
    waits = list(run.jobs["waiting_time"])
    assert all(wait > 0 for wait in waits)
    assert run.manifest["real"]["run_s"] < 7200


def test_kube_scheduler_runs_paced(simulate: Simulate, kube_scheduler: str) -> None:
    run = simulate(_jobs(0, 0, 0, 1), PROFILES, platform="2x1", scheduler=kube_scheduler, time="paced:timeout=50ms")

    assert list(run.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"] * 4
    assert float(run.schedule["makespan"]) >= 20
    assert int(run.schedule["over_allocations"]) == 0


def test_real_time_runs_at_the_requested_speed(simulate: Simulate, plain: str) -> None:
    run = simulate(_jobs(0, 5), PROFILES, scheduler=plain, time="realtime:speed=20")

    assert list(run.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"] * 2
    assert list(run.jobs["execution_time"]) == [10.0] * 2
    # Simulated time passed no faster than real time times the speed.
    assert float(run.schedule["makespan"]) <= 20 * run.manifest["real"]["run_s"]


@pytest.mark.parametrize("time", [PATIENT, "realtime:speed=20"])
def test_objects_are_created_at_their_times_in_every_time_mode(plain: str, tmp_path: Path, time: str) -> None:
    """By the rules of 2020 events happen before the clock jumps to their instant; in real time they happen late."""
    objects = tmp_path / "objects.yaml"
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "a", "command": ["sleep", "1"]}]}
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{at}", "annotations": {"batkube.io/submit": at}},
            "spec": pod,
        }
        for at in ("0s", "7s", "90s")
    ]
    objects.write_text("---\n".join(json.dumps(manifest) + "\n" for manifest in manifests))

    run = batkube.run(workload=objects, platform="4x1", scheduler=plain, time=time, out=tmp_path / "out")

    assert sorted(run.pods["created"]) == [0.0, 7.0, 90.0]


def test_a_program_that_does_nothing_in_real_time_runs_out_of_patience(simulate: Simulate, plain: str) -> None:
    with pytest.raises(RunFailed, match="left 1 of 1 jobs without an outcome"):
        simulate(
            _jobs(0),
            PROFILES,
            scheduler=plain,
            scheduler_args={"way": "ignores"},
            time="realtime:speed=100",
            patience="30s",
        )


def test_the_manifest_contains_the_rules_and_round_trips(simulate: Simulate, plain: str) -> None:
    run = simulate(_jobs(0), PROFILES, scheduler=plain, time=PATIENT)

    scenario = run.manifest["scenario"]
    assert scenario["time"]["mode"] == "paced"
    assert scenario["time"]["timeout"] == "0.300000"
    assert scenario["deterministic"] is False


def test_a_scenario_file_accepts_the_rules_as_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "{workload: w.json, platform: 4x1, scheduler: ./s, time: {mode: paced, max-step: 5s, fast-forward: off}}"
    )

    rules = make_scenario(read_scenario_file(path), path).time

    assert rules == parse_time("paced:max-step=5s,fast-forward=off")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"time": "paced:timeuot=1s"}, "'timeuot' is not a parameter of paced"),
        ({"time": "slow"}, "'slow' is not a time mode"),
        ({"time": "paced", "deterministic": True}, "so runs differ"),
        ({"time": "paced", "decision_cost": "measured"}, "which includes the real cost of decisions"),
        ({"time": "realtime", "scheduler": "policy:easy"}, "which policy:easy does not use"),
    ],
)
def test_incompatible_options_are_rejected(simulate: Simulate, options: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        simulate(_jobs(0), PROFILES, **{"scheduler": os.devnull, **options})  # type: ignore[arg-type]
