"""When an object of a custom kind has ended, as its status says."""

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
def test_a_status_says_whether_an_object_ended(status: Any, ended: bool) -> None:  # noqa: ANN401 - JSON
    assert has_finished({"metadata": {"name": "a"}, "status": status}) is ended


def test_an_object_without_a_status_has_not_ended() -> None:
    assert not has_finished({"metadata": {"name": "a"}, "spec": {"phase": "Completed"}})
