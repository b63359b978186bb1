"""Other real programs on the clock of a run, attached beside its scheduler."""

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


def test_attached_controllers_share_the_clock_and_do_not_change_results(
    simulate: Simulate, built_program: Callable[[str], str], kube_scheduler: str, tmp_path: Path
) -> None:
    def run(name: str, *attach: str) -> batkube.Run:
        return simulate(
            _jobs(0, 1, 2, 3, 4), PROFILES, scheduler=kube_scheduler, attach=list(attach), out=tmp_path / name
        )

    alone, first, again = run("alone"), run("a", built_program(MANAGER)), run("b", built_program(MANAGER))
    assert first.manifest["digest"] == again.manifest["digest"]
    assert list(first.jobs["waiting_time"]) == list(alone.jobs["waiting_time"])
    assert [(told["name"], told["version"], told["serves"]) for told in first.manifest["programs"][1:]] == [
        (MANAGER, "v1.34.4", [])
    ]
    assert (
        '"Starting" version="v1.34.4"'
        in (first.path / "scheduler" / "attached-1-kube-controller-manager" / "log.txt").read_text()
    )


def test_timers_of_an_attached_controller_are_in_virtual_time(
    simulate: Simulate, built_program: Callable[[str], str], kube_scheduler: str, tmp_path: Path
) -> None:
    """The only node's last lease is at 0 s; more than two minutes later, at 125.1 s, the node is marked as unknown."""
    watching = f"{built_program(MANAGER)} --controllers=node-lifecycle-controller --node-monitor-grace-period=2m"
    keys = {"platform": "1x1", "events": [{"at": 1, "fail": "node-0"}], "patience": "1m"}
    with pytest.raises(RunFailed, match="left 2 of 2 jobs without an outcome"):
        simulate(_jobs(125, 126), PROFILES, scheduler=kube_scheduler, attach=watching, **keys)
    journal = _journal(tmp_path / "out")
    assert [entry["t"] for entry in journal if entry["event"] == "bind"] == [125 * 10**9]
    (reason,) = [entry["reason"] for entry in journal if entry["event"] == "unschedulable"]
    assert "untolerated taint" in str(reason)


def test_a_job_that_an_attached_program_evicts_restarts(
    simulate: Simulate, kube_scheduler: str, faulty_scheduler: str
) -> None:
    """The program evicts 90 s after its own start, 30 s into the run."""
    profiles = {"short": {"type": "delay", "delay": 100}}
    run = simulate(_jobs(0), profiles, scheduler=kube_scheduler, attach=f"{faulty_scheduler} --way=evicts")
    assert (run.jobs.loc[0, "starting_time"], run.jobs.loc[0, "finish_time"]) == (30, 130)
    assert [entry["t"] for entry in _journal(run.path) if entry["event"] == "evict"] == [30 * 10**9]


def test_pods_without_a_job_are_bound_and_recorded(
    simulate: Simulate, kube_scheduler: str, faulty_scheduler: str
) -> None:
    run = simulate(_jobs(0, 40), PROFILES, scheduler=kube_scheduler, attach=f"{faulty_scheduler} --way=adds")
    assert json.loads((run.path / "fidelity.json").read_text()) == []
    assert "default/stray" in [entry.get("pod") for entry in _journal(run.path) if entry["event"] == "bind"]
    (stray,) = run.pods[run.pods["pod"] == "stray"].to_dict("records")
    assert (stray["job_id"], stray["workload_name"], stray["owner"], stray["phase"]) == ("", "", "", "Running")


def test_a_descheduler_spreads_pods_over_nodes_added_later(tmp_path: Path) -> None:
    """It runs every five minutes from its start, a minute before the run; the nodes are added after seven minutes."""
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
