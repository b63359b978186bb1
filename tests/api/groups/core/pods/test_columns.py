"""Columns of pods."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.groups.printed_cells import NOW, printed

from batkube.api.groups.scheme.printing import PRINTERS
from batkube.api.printing import tables
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant

SECOND = NANOSECONDS_PER_SECOND


def pod(**status: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {
        "metadata": {"name": "web", "creationTimestamp": "2026-11-15T20:36:20Z"},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
        "status": status,
    }


def test_a_crashing_container_prints_its_reason_and_last_restart() -> None:
    ended = {"terminated": {"exitCode": 1, "finishedAt": "2026-11-15T20:39:30Z"}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    cells = printed(
        "pods",
        pod(
            phase="Running",
            containerStatuses=[
                {"name": "a", "restartCount": 3, "state": waiting, "lastState": ended},
                {"name": "b", "ready": True, "state": {"running": {}}},
            ],
        ),
    )

    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == ("1/2", "CrashLoopBackOff", "3 (30s ago)")
    assert cells["Age"] == "3m40s"


def test_the_reason_of_the_first_container_wins() -> None:
    states = [{"terminated": {"reason": "Completed"}}, {"terminated": {"exitCode": 137, "signal": 9}}]
    cells = printed("pods", pod(phase="Failed", containerStatuses=[{"state": state} for state in states]))

    assert cells["Status"] == "Completed"


@pytest.mark.parametrize(("ready", "word"), [("True", "Running"), ("False", "NotReady")], ids=["ready", "not ready"])
def test_a_pod_with_a_finished_sidecar_is_running_or_not_ready(ready: str, word: str) -> None:
    cells = printed(
        "pods",
        pod(
            phase="Running",
            conditions=[{"type": "Ready", "status": ready}],
            containerStatuses=[
                {"state": {"terminated": {"reason": "Completed"}}},
                {"ready": True, "state": {"running": {}}},
            ],
        ),
    )

    assert cells["Status"] == word


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ({"terminated": {"exitCode": 2}}, "Init:ExitCode:2"),
        ({"terminated": {"exitCode": 2, "signal": 9}}, "Init:Signal:9"),
        ({"terminated": {"exitCode": 2, "reason": "Error"}}, "Init:Error"),
        ({"waiting": {"reason": "ImagePullBackOff"}}, "Init:ImagePullBackOff"),
        ({"waiting": {"reason": "PodInitializing"}}, "Init:1/2"),
        ({"running": {}}, "Init:1/2"),
    ],
)
def test_the_status_names_the_first_unfinished_init_container(state: dict[str, Any], word: str) -> None:
    value = pod(
        phase="Pending",
        initContainerStatuses=[
            {"name": "x", "state": {"terminated": {"exitCode": 0}}, "restartCount": 1},
            {"name": "y", "state": state},
        ],
    )
    value["spec"]["initContainers"] = [{"name": "x"}, {"name": "y"}]

    cells = printed("pods", value)

    assert (cells["Status"], cells["Ready"], cells["Restarts"]) == (word, "0/2", "1")


def test_a_started_sidecar_counts_as_a_container() -> None:
    value = pod(
        phase="Running", initContainerStatuses=[{"name": "s", "started": True, "ready": True, "restartCount": 2}]
    )
    value["spec"]["initContainers"] = [{"name": "s", "restartPolicy": "Always"}]

    cells = printed("pods", value)

    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == ("1/3", "Running", "2")


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
    ],
)
def test_a_deleted_pod_is_terminating_unless_it_has_finished(status: dict[str, Any], word: str) -> None:
    value = pod(**status)
    value["metadata"]["deletionTimestamp"] = "2026-11-15T20:39:00Z"

    assert printed("pods", value)["Status"] == word


def test_a_gated_pod_prints_its_status_and_readiness_gates() -> None:
    gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    value = pod(phase="Pending", conditions=[gated, {"type": "x/y", "status": "True"}])
    value["spec"]["readinessGates"] = [{"conditionType": "x/y"}, {"conditionType": "x/z"}]

    cells = printed("pods", value)

    assert (cells["Status"], cells["Readiness Gates"]) == ("SchedulingGated", "1/2")


def test_a_finished_pods_row_has_a_condition() -> None:
    row = tables.make_table(PRINTERS["pods"], [pod(phase="Failed")], NOW, metadata={})["rows"][0]

    assert [condition["reason"] for condition in row["conditions"]] == ["Failed"]


def test_ages_of_a_table_depend_on_the_given_instant() -> None:
    later = Instant(NOW + 3600 * SECOND)

    assert PRINTERS["pods"].cells(pod(), later)[4] == "63m"
