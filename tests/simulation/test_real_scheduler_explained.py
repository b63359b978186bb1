"""The real kube-scheduler 1.34.4 with `--explain`: its scores and reasons, and the same decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import batkube
from batkube.outputs.explain.explanation import Explainer
from batkube.outputs.explain.model import JobExplanation
from batkube.outputs.explain.text import lines_of
from conftest import Simulate

PROFILES = {f"d{length}": {"type": "delay", "delay": length} for length in (30, 100, 400)}
#: Nodes of different sizes, so that no two have the same score.
UNEQUAL_NODES = "\n---\n".join(
    json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{cpu}"},
            "status": {"capacity": {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "110"}},
        }
    )
    for cpu, memory in ((3, 97), (8, 23), (17, 51))
)


def jobs(count: int, interval: int = 7) -> list[dict[str, Any]]:
    return [
        {
            "id": str(number),
            "subtime": number * interval,
            "res": 1,
            "profile": f"d{(30, 100, 400)[number % 3]}",
            "cpu": 1 + number % 3,
            "memory": "1Gi",
            "priority": 10 if number % 4 == 0 else 0,
        }
        for number in range(count)
    ]


def reasons(run: batkube.Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.path / "reasons.jsonl").read_text().splitlines()]


def test_where_nothing_is_left_to_chance_the_decisions_are_those_without_explain(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    """All pods fit, and no nodes tie. Otherwise the program draws random numbers, others than without `--explain`."""
    platform = tmp_path / "nodes.yaml"
    platform.write_text(UNEQUAL_NODES)
    options: dict[str, Any] = {"platform": str(platform), "scheduler": kube_scheduler}
    plain = simulate(jobs(25, 60), PROFILES, out=tmp_path / "plain", **options)
    explained = simulate(jobs(25, 60), PROFILES, out=tmp_path / "explained", explain=True, **options)

    choices = [entry for entry in reasons(explained) if entry["event"] == "choose"]
    assert [entry["tied"] > 1 for entry in choices] == [False] * 25
    assert explained.manifest["digest"] == plain.manifest["digest"]


def test_scores_and_reasons_are_those_of_the_run_and_repeatable(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    first, second = (
        simulate(jobs(40), PROFILES, platform="3x4,16Gi", scheduler=kube_scheduler, explain=True, out=tmp_path / name)
        for name in ("first", "second")
    )
    entries = reasons(first)
    choices = [entry for entry in entries if entry["event"] == "choose"]
    attempts = [entry for entry in entries if entry["event"] == "attempt"]

    assert (first.path / "reasons.jsonl").read_bytes() == (second.path / "reasons.jsonl").read_bytes()
    assert any("--explain makes the scheduler log more" in note["message"] for note in first.notes)
    # One choice for each binding, of a node with the highest score; the scores of plugins add up.
    journal = [json.loads(line) for line in (first.path / "journal.jsonl").read_text().splitlines()]
    assert len(choices) == sum(entry["event"] == "bind" for entry in journal)
    for entry in choices:
        for score in entry["best"]:
            assert sum(score["plugins"].values()) == score["score"]
        if entry["feasible"] > 1:
            scores = {score["node"]: score["score"] for score in entry["best"]}
            assert scores[entry["node"]] == max(scores.values())
    assert any(entry["tied"] > 1 for entry in choices)
    # Every failed attempt of the journal has its reason and the plugin that rejected the nodes.
    assert len(attempts) == sum(entry["event"] == "attempt" for entry in journal) > 0
    assert all(entry["plugins"] == ["NodeResourcesFit"] for entry in attempts)


def test_a_preempted_job_is_told_for_whom_it_was_evicted(
    simulate: Simulate, kube_scheduler: str, tmp_path: Path
) -> None:
    two = [
        {"id": "low", "subtime": 0, "res": 1, "profile": "d400", "cpu": 4},
        {"id": "high", "subtime": 50, "res": 1, "profile": "d30", "cpu": 4, "priority": 10},
    ]
    simulate(two, PROFILES, platform="1x4,16Gi", scheduler=kube_scheduler, explain=True)
    explainer = Explainer(tmp_path / "out")
    low = explainer.explain("low")

    assert isinstance(low, JobExplanation)
    assert len(low.executions) == 2
    assert "evicted to free resources for w0-high" in "\n".join(lines_of(low))
    assert [holder.name for holder in low.executions[1].periods[0].holders] == ["w0!high"]
    assert "w0-low was evicted to free resources for it" in "\n".join(lines_of(explainer.explain("high")))
