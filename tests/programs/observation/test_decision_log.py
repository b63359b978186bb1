"""Parsing of kube-scheduler's reasons from its log."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batkube.kernel.instants import Instant
from batkube.kernel.journal import Journal
from batkube.programs.observation.decision_log import BEST_NODES, DecisionLogReader
from batkube.timing.processes.program_log import ProgramLog

NOW = Instant(2_000_000_000)


def line(message: str, fields: str) -> str:
    return f'I0101 00:00:01.500000    7 schedule_one.go:815] "{message}" pod="default/w0-1" {fields}\n'


@pytest.fixture
def output(tmp_path: Path) -> Iterator[ProgramLog]:
    log = ProgramLog(tmp_path / "log.txt")
    yield log
    log.close()


def reasons(output: ProgramLog, text: str, split_at: int = 0) -> list[dict[str, Any]]:
    sink = io.BytesIO()
    journal = Journal(sink)
    reader = DecisionLogReader(output, journal)
    for piece in (text[:split_at], text[split_at:]):
        os.write(output.sink, piece.encode())
        reader.read(NOW)
    journal.flush()
    return [json.loads(entry) for entry in sink.getvalue().splitlines()]


def test_a_choice_has_the_scores_of_the_best_nodes_and_of_the_chosen_one(output: ProgramLog) -> None:
    nodes = [f"n{number}" for number in range(BEST_NODES + 2)]
    text = line("Attempting to schedule pod", "")
    for number, node in enumerate(nodes):
        text += line("Plugin scored node for pod", f'plugin="Fit" node="{node}" score={number}')
        text += line("Plugin scored node for pod", f'plugin="Taints" node="{node}" score=300')
    for number, node in enumerate(nodes):
        text += line("Calculated node's final score for pod", f'node="{node}" score={300 + number}')
    text += line("Successfully bound pod to node", 'node="n0" evaluatedNodes=9 feasibleNodes=7')

    (entry,) = reasons(output, text, split_at=len(text) // 2)
    best = entry.pop("best")
    assert entry == {
        "t": 1_500_000_000,
        "event": "choose",
        "pod": "w0-1",
        "node": "n0",
        "evaluated": 9,
        "feasible": 7,
        "tied": 1,
    }
    assert [score["node"] for score in best] == [*reversed(nodes[2:]), "n0"]
    assert best[0] == {"node": nodes[-1], "score": 306, "plugins": {"Fit": 6, "Taints": 300}}


def test_a_pod_with_one_feasible_node_has_no_scores(output: ProgramLog) -> None:
    text = line("Successfully bound pod to node", 'node="n0" evaluatedNodes=4 feasibleNodes=1')

    (entry,) = reasons(output, text)
    assert (entry["feasible"], entry["tied"], entry["best"]) == (1, 0, [])


def test_a_failure_has_the_plugins_that_rejected_nodes(output: ProgramLog) -> None:
    text = line("Unable to schedule pod; no fit; waiting", 'err="0/2 nodes: 2 taint \\"x\\"."')
    text += line(
        "Pod moved to an internal scheduling queue",
        'event="ScheduleAttemptFailure" queue="Unschedulable" hint=0 unschedulable plugins={"B":{},"A":{}}',
    )

    assert reasons(output, text) == [
        {
            "t": 1_500_000_000,
            "event": "attempt",
            "pod": "w0-1",
            "reason": '0/2 nodes: 2 taint "x".',
            "plugins": ["A", "B"],
        }
    ]


def test_failures_of_a_scheduler_that_logs_no_plugins_are_recorded_too(output: ProgramLog) -> None:
    text = line("Unable to schedule pod; no fit; waiting", 'err="first"') + line("Attempting to schedule pod", "")
    text += line("Unable to schedule pod; no fit; waiting", 'err="second"')

    assert [(entry["reason"], entry["plugins"]) for entry in reasons(output, text)] == [("first", []), ("second", [])]


def test_a_preemption_names_the_preemptor(output: ProgramLog) -> None:
    text = (
        'I0101 00:00:01.500000    7 preemption.go:199] "Preemptor Pod preempted victim Pod" '
        'preemptor="default/high" victim="team/low" node="n1"\n'
    )

    assert reasons(output, text) == [
        {"t": 1_500_000_000, "event": "evict", "pod": "team/low", "rule": "preemption", "by": "high", "node": "n1"}
    ]


@pytest.mark.parametrize("text", ["", "no header pod\n", line("Attempting to schedule pod", ""), "I0101 \xff pod\n"])
def test_other_lines_are_ignored(output: ProgramLog, text: str) -> None:
    assert reasons(output, text) == []
