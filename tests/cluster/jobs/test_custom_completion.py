"""Completion of custom resources, by their status."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.cluster.jobs.custom_completion import has_finished


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        ({"conditions": [{"type": "Completed", "status": "True"}]}, True),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, True),
        ({"conditions": [{"type": "Failed", "status": "False"}, {"type": "Running", "status": "True"}]}, False),
        ({"phase": "Succeeded"}, True),
        ({"phase": "Running"}, False),
        ({"state": {"phase": "Completed"}}, True),
        ({"state": {"phase": "Pending"}}, False),
        ({"terminalState": "Completed"}, True),
        ({"applicationState": {"state": "COMPLETED"}}, True),
        ({"conditions": {"type": "Completed"}, "phase": 3, "state": ["Failed"]}, False),
        ({"conditions": [1, {"type": ["Failed"]}]}, False),
        ("Completed", False),
        (None, False),
    ],
)
def test_completion_is_recognised_by_the_status(status: Any, ended: bool) -> None:  # noqa: ANN401 - JSON
    assert has_finished({"metadata": {"name": "a"}, "status": status}) is ended


def test_an_object_without_a_status_has_not_finished() -> None:
    assert not has_finished({"metadata": {"name": "a"}, "spec": {"phase": "Completed"}})
