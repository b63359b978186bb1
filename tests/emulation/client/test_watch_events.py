"""Watch events are decoded to updates of pods and to Events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from batkube.emulation.client.watch_events import (
    PodUpdate,
    decode_watch_event,
    items_of,
    pod_event_of,
    pod_update_of,
    resource_version_of,
)
from batkube.emulation.manifests import LABEL_NUMBER
from batkube.kernel.instants import Instant

NOW = Instant(5)


def raw(content: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(content))


def update_of(status: dict[str, Any], *, node: str = "n1", is_deletion: bool = False) -> PodUpdate:
    metadata = {"name": "w0-3", "resourceVersion": "9", "labels": {LABEL_NUMBER: "3"}, "managedFields": [{"a": 1}]}
    pod = pod_update_of(
        raw({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}, "status": status}),
        NOW,
        is_deletion=is_deletion,
    )
    assert pod is not None
    return pod


def container(**state: object) -> dict[str, object]:
    return {"name": "job", "ready": False, "state": state}


def test_an_unschedulable_pod_has_the_message_of_its_condition_as_reason() -> None:
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes"}

    pod = update_of({"phase": "Pending", "conditions": [unplaced]}, node="")

    assert (pod.number, pod.node, pod.reason) == (3, "", "0/4 nodes")
    assert not pod.has_started
    assert not pod.has_finished


def test_a_running_pod_has_started() -> None:
    pod = update_of(
        {"phase": "Running", "containerStatuses": [container(running={"startedAt": "2026-01-01T00:00:00Z"})]}
    )

    assert pod.has_started
    assert (pod.started_at, pod.has_finished) == ("2026-01-01T00:00:00Z", False)


@pytest.mark.parametrize(("phase", "code", "reason"), [("Succeeded", 0, ""), ("Failed", 3, "Error: exit code 3")])
def test_a_finished_pod_has_exit_code_and_reason(phase: str, code: int, reason: str) -> None:
    ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "startedAt": "2026-01-01T00:00:00Z"}

    pod = update_of({"phase": phase, "containerStatuses": [container(terminated=ended)]})

    assert (pod.has_finished, pod.has_started, pod.exit_code, pod.reason) == (True, True, code, reason)


def test_a_waiting_container_has_its_reason_unless_it_is_being_created() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    creating = update_of(
        {"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ContainerCreating"})]}
    )
    stuck = update_of({"phase": "Pending", "containerStatuses": [container(waiting=waiting)]})

    assert (creating.reason, stuck.reason) == ("", "ImagePullBackOff: no such image")


def test_a_deleted_pod_has_finished_whatever_its_phase() -> None:
    assert update_of({"phase": "Running"}, is_deletion=True).has_finished


def test_a_pod_with_the_condition_disruption_target_is_disrupted() -> None:
    assert update_of({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}).is_disrupted


def test_a_pod_without_a_job_number_is_ignored() -> None:
    assert pod_update_of(raw({"metadata": {"name": "x"}, "spec": {}}), NOW) is None


def test_the_count_of_an_event_is_its_count_or_that_of_its_series() -> None:
    about = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "w0-3"}, "reason": "FailedScheduling"}
    counts = []
    for extra in ({}, {"count": 4}, {"count": None, "series": {"count": 7}}):
        event = pod_event_of(raw({**about, "message": None, **extra}), NOW)
        assert event is not None
        counts.append(event.count)

    assert counts == [1, 4, 7]
    assert pod_event_of(raw({**about, "involvedObject": {"kind": "Node", "name": "n1"}}), NOW) is None


def test_lists_and_watch_events_have_a_resource_version() -> None:
    line = decode_watch_event(b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}')
    pods = b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{}},{"metadata":{}}]}'

    assert (line.type, resource_version_of(line.object), resource_version_of(pods), len(items_of(pods))) == (
        "BOOKMARK",
        "12",
        "7",
        2,
    )
