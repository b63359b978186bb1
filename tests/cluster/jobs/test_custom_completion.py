"""Completion of custom resources, by their status."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.cluster.jobs.custom_completion import CustomStage, stage_of

ENDED: list[Any] = [
    {"conditions": [{"type": "Completed", "status": "True"}]},
    {"conditions": [{"type": "Failed", "status": "True"}]},
    {"conditions": [{"type": "Succeeded", "status": "False"}]},
    {"phase": "Succeeded"},
    {"phase": "Error"},
    {"state": {"phase": "Completed"}},
    {"state": {"phase": "Aborted"}},
    {"terminalState": "Completed"},
    {"applicationState": {"state": "COMPLETED"}},
    {"completionTime": "2000-01-01T00:00:00Z"},
    {"finishedAt": "2000-01-01T00:00:00Z", "phase": ""},
]
OPEN: list[Any] = [
    {"phase": "Running"},
    {"state": {"phase": "Pending"}},
    {"state": {"phase": "Aborting"}, "conditions": [1]},
    {"applicationState": {"state": "PENDING_RERUN"}},
    {},
    None,
]
UNKNOWN: list[Any] = [
    {"conditions": [{"type": "Active", "status": "True"}], "pendingWorkloads": 3},
    {"conditions": [{"type": "Failed", "status": "False"}, {"type": "Running", "status": "True"}]},
    {"conditions": [{"type": "Succeeded", "status": "Unknown"}]},
    {"conditions": {"type": "Completed"}, "phase": 3, "state": ["Failed"]},
    {"conditions": [1, {"type": ["Failed"]}]},
    {"state": "Open"},
    {"completionTime": None, "restarts": 0},
    "Completed",
]
STAGES = [(CustomStage.ENDED, ENDED), (CustomStage.OPEN, OPEN), (CustomStage.UNKNOWN, UNKNOWN)]


@pytest.mark.parametrize(("stage", "status"), [(stage, status) for stage, some in STAGES for status in some])
def test_the_status_determines_the_stage(stage: CustomStage, status: Any) -> None:  # noqa: ANN401 - JSON
    assert stage_of({"metadata": {"name": "a"}, "status": status}) is stage


def test_an_object_without_a_status_is_open() -> None:
    assert stage_of({"metadata": {"name": "a"}, "spec": {"phase": "Completed"}}) is CustomStage.OPEN
