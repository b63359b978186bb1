"""Other real programs on the clock of a run, beside its scheduler."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import opt_in

import batkube
from batkube import RunFailed
from conftest import Simulate

DESCHEDULER = Path(__file__).parent.parent.parent / "examples" / "descheduler"
MANAGER = "kube-controller-manager@1.34.4"
PROFILES = {"short": {"type": "delay", "delay": 20}}


def _jobs(*submit_s: float) -> list[dict[str, object]]:
    return [
        {"id": str(number), "subtime": at, "res": 1, "profile": "short", "cpu": "1"}
        for number, at in enumerate(submit_s)
    ]


def _journal(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def test_the_real_controllers_share_the_clock_and_change_nothing_by_themselves(
    simulate: Simulate, kept_program: Callable[[str], str], kube_scheduler: str, tmp_path: Path
) -> None:
    def run(name: str, *attach: str) -> batkube.Run:
        return simulate(
            _jobs(0, 1, 2, 3, 4), PROFILES, scheduler=kube_scheduler, attach=list(attach), out=tmp_path / name
        )

    alone, first, again = run("alone"), run("a", kept_program(MANAGER)), run("b", kept_program(MANAGER))
    assert first.manifest["digest"] == again.manifest["digest"]
    assert list(first.jobs["waiting_time"]) == list(alone.jobs["waiting_time"])
    assert [(told["name"], told["version"], told["serves"]) for told in first.manifest["programs"][1:]] == [
        (MANAGER, "v1.34.4", [])
    ]
    assert (
        '"Starting" version="v1.34.4"'
        in (first.path / "scheduler" / "attached-1-kube-controller-manager" / "log.txt").read_text()
    )


def test_a_controller_acts_when_its_timers_say_so(
    simulate: Simulate, kept_program: Callable[[str], str], kube_scheduler: str, tmp_path: Path
) -> None:
    """More than two minutes after it saw the only node's last lease, of 0 s, it takes the node for lost: at 125.1 s."""
    watching = f"{kept_program(MANAGER)} --controllers=node-lifecycle-controller --node-monitor-grace-period=2m"
    keys = {"platform": "1x1", "events": [{"at": 1, "fail": "node-0"}], "patience": "1m"}
    with pytest.raises(RunFailed, match="left 2 of 2 jobs without an outcome"):
        simulate(_jobs(125, 126), PROFILES, scheduler=kube_scheduler, attach=watching, **keys)
    journal = _journal(tmp_path / "out")
    assert [entry["t"] for entry in journal if entry["event"] == "bind"] == [125 * 10**9]
    (reason,) = [entry["reason"] for entry in journal if entry["event"] == "unschedulable"]
    assert "untolerated taint" in str(reason)


def test_a_job_that_an_attached_program_evicts_starts_over(
    simulate: Simulate, kube_scheduler: str, wayward: str
) -> None:
    """It acts 90 s after its own start, 30 s into the run."""
    profiles = {"short": {"type": "delay", "delay": 100}}
    run = simulate(_jobs(0), profiles, scheduler=kube_scheduler, attach=f"{wayward} --way=evicts")
    assert (run.jobs.loc[0, "starting_time"], run.jobs.loc[0, "finish_time"]) == (30, 130)
    assert [entry["t"] for entry in _journal(run.path) if entry["event"] == "evict"] == [30 * 10**9]


def test_pods_of_no_job_are_bound_and_told_of_beside_the_jobs(
    simulate: Simulate, kube_scheduler: str, wayward: str
) -> None:
    run = simulate(_jobs(0, 40), PROFILES, scheduler=kube_scheduler, attach=f"{wayward} --way=adds")
    assert json.loads((run.path / "fidelity.json").read_text()) == []
    assert "default/stray" in [entry.get("pod") for entry in _journal(run.path) if entry["event"] == "bind"]
    (stray,) = run.pods[run.pods["pod"] == "stray"].to_dict("records")
    assert (stray["job_id"], stray["workload_name"], stray["owner"], stray["phase"]) == ("", "", "", "Running")


def test_a_descheduler_spreads_pods_over_nodes_that_came_later(tmp_path: Path) -> None:
    """It looks every five minutes from its start, a minute before the run, and the nodes come after seven."""
    opt_in.require_built("descheduler", "kube-scheduler@1.34.4")

    def spread(name: str, **more: str) -> batkube.Run:
        return batkube.run(
            workload=DESCHEDULER / "web.yaml",
            platform="1x4,8Gi",
            events=DESCHEDULER / "more-nodes.yaml",
            scheduler="kube-scheduler@1.34.4",
            until="20m",
            out=tmp_path / name,
            **more,
        )

    alone = spread("alone")
    first, again = spread("a", attach="descheduler"), spread("b", attach="descheduler")

    assert set(alone.pods["node"]) == {"node-0"}
    running = first.pods[first.pods["phase"] == "Running"]
    assert sorted(running["node"]) == ["added-0", "added-1", "added-2", "node-0"]
    evictions = [entry for entry in _journal(first.path) if entry["event"] == "evict"]
    assert [entry["t"] for entry in evictions] == 3 * [540 * 10**9]
    assert first.manifest["digest"] == again.manifest["digest"]
