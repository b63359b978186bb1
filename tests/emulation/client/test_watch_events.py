"""What the JSON of pods and events comes to."""

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


def seen(status: dict[str, Any], *, node: str = "n1", gone: bool = False) -> PodUpdate:
    metadata = {"name": "w0-3", "resourceVersion": "9", "labels": {LABEL_NUMBER: "3"}, "managedFields": [{"a": 1}]}
    pod = pod_update_of(
        raw({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}, "status": status}), NOW, is_gone=gone
    )
    assert pod is not None
    return pod


def container(**state: object) -> dict[str, object]:
    return {"name": "job", "ready": False, "state": state}


def test_a_pending_pod_tells_why_it_is_not_placed() -> None:
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/4 nodes"}

    pod = seen({"phase": "Pending", "conditions": [unplaced]}, node="")

    assert (pod.number, pod.node, pod.reason) == (3, "", "0/4 nodes")
    assert not pod.has_started
    assert not pod.has_finished


def test_a_running_pod_has_started() -> None:
    pod = seen({"phase": "Running", "containerStatuses": [container(running={"startedAt": "2026-01-01T00:00:00Z"})]})

    assert pod.has_started
    assert (pod.started_at, pod.has_finished) == ("2026-01-01T00:00:00Z", False)


@pytest.mark.parametrize(("phase", "code", "reason"), [("Succeeded", 0, ""), ("Failed", 3, "Error: exit code 3")])
def test_a_pod_that_has_ended_tells_how(phase: str, code: int, reason: str) -> None:
    ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "startedAt": "2026-01-01T00:00:00Z"}

    pod = seen({"phase": phase, "containerStatuses": [container(terminated=ended)]})

    assert (pod.has_finished, pod.has_started, pod.exit_code, pod.reason) == (True, True, code, reason)


def test_a_container_that_cannot_start_tells_why() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    made = seen({"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ContainerCreating"})]})
    stuck = seen({"phase": "Pending", "containerStatuses": [container(waiting=waiting)]})

    assert (made.reason, stuck.reason) == ("", "ImagePullBackOff: no such image")


def test_a_pod_that_is_no_longer_there_has_ended_whatever_its_phase() -> None:
    assert seen({"phase": "Running"}, gone=True).has_finished


def test_a_pod_that_has_to_make_room_says_so() -> None:
    assert seen({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}).is_disrupted


def test_pods_of_others_are_not_ours() -> None:
    assert pod_update_of(raw({"metadata": {"name": "x"}, "spec": {}}), NOW) is None


def test_events_are_counted_in_either_of_the_two_ways() -> None:
    about = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "w0-3"}, "reason": "FailedScheduling"}
    counts = []
    for extra in ({}, {"count": 4}, {"count": None, "series": {"count": 7}}):
        event = pod_event_of(raw({**about, "message": None, **extra}), NOW)
        assert event is not None
        counts.append(event.count)

    assert counts == [1, 4, 7]
    assert pod_event_of(raw({**about, "involvedObject": {"kind": "Node", "name": "n1"}}), NOW) is None


def test_lists_and_lines_of_watches_carry_versions() -> None:
    line = decode_watch_event(b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"12"}}}')
    listed = b'{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{}},{"metadata":{}}]}'

    assert (line.type, resource_version_of(line.object), resource_version_of(listed), len(items_of(listed))) == (
        "BOOKMARK",
        "12",
        "7",
        2,
    )
