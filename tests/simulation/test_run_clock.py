"""Pauses, steps and paces of a run change nothing in its results."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

from batkube.kernel.instants import Instant, seconds
from batkube.scenarios.keys import make_scenario
from batkube.scenarios.scenario import Scenario
from batkube.simulation.run import execute
from batkube.timing.run_clock import PausableClock

_FILES = ("jobs.csv", "pods.csv", "journal.jsonl", "machine_states.csv", "nodes.csv", "schedule.csv")
_INTERFERENCES = 60


def scenario_of(folder: Path, scheduler: str) -> Scenario:
    jobs = [
        {"id": str(number), "subtime": number * 7, "res": 1 + number % 3, "profile": f"d{number % 4}", "walltime": 900}
        for number in range(40)
    ]
    profiles = {f"d{number}": {"type": "delay", "delay": 20 + 35 * number} for number in range(4)}
    (folder / "w.json").write_text(json.dumps({"nb_res": 5, "jobs": jobs, "profiles": profiles}))
    (folder / "events.yaml").write_text("- {at: 60, fail: node-1, for: 80}\n- {at: 90, cordon: node-2, for: 100}\n")
    keys = {
        "workload": [str(folder / "w.json")],
        "platform": "5x4",
        "scheduler": scheduler,
        "events": str(folder / "events.yaml"),
        "resources": "requests",
    }
    return make_scenario(keys, "test")


def interfere(clock: PausableClock, is_over: threading.Event, numbers: random.Random) -> list[str]:
    """Use all controls, the first ones so that the run goes on, and then let it finish; return what was used."""
    used: list[str] = []
    first = ["step", "until", "pause", "speed"]
    while len(used) < _INTERFERENCES and not is_over.wait(0.003):
        action = first.pop() if first else numbers.choice(["pause", "resume", "step", "until", "speed", "full speed"])
        used.append(action)
        match action:
            case "pause":
                clock.pause()
            case "resume":
                clock.resume()
            case "step":
                clock.step()
            case "until":
                clock.run_until(Instant(clock.state().now + seconds(numbers.randrange(60))))
            case "speed":
                clock.set_speed(numbers.choice([100.0, 5000.0]))
            case _:
                clock.set_speed(None)
    clock.set_speed(None)
    clock.resume()
    return used


def assert_unaffected(folder: Path, scheduler: str) -> None:
    scenario = scenario_of(folder, scheduler)
    expected = execute(scenario, folder / "undisturbed").digest
    for seed in range(2):
        clock, is_over, used = PausableClock(is_paused=True), threading.Event(), list[str]()
        arguments = clock, is_over, random.Random(seed)
        thread = threading.Thread(target=lambda arguments=arguments, used=used: used.extend(interfere(*arguments)))
        thread.start()
        out = folder / f"disturbed-{seed}"
        try:
            assert execute(scenario, out, run_clock=clock).digest == expected
        finally:
            is_over.set()
            thread.join()
        assert len(set(used)) > 3, "the run was disturbed"
        for name in _FILES:
            assert (out / name).read_bytes() == (folder / "undisturbed" / name).read_bytes(), name


def test_a_run_of_a_policy_is_the_same_with_any_pauses(tmp_path: Path) -> None:
    assert_unaffected(tmp_path, "policy:easy")


def test_a_run_of_kube_scheduler_is_the_same_with_any_pauses(tmp_path: Path, kube_scheduler: str) -> None:
    assert_unaffected(tmp_path, kube_scheduler)
