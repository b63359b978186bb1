"""Strategy of pods: QoS class, gates, status updates, resizes and deletions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.groups.prepared_objects import created, deployment, pod, resource_of, updated

from batkube.api.groups.core.pods.strategy import qos_class
from batkube.api.groups.scheme.strategies import deletion_grace_s


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1"}}, "Burstable"),
        ({"limits": {"example.com/gpu": "1"}}, "BestEffort"),
    ],
)
def test_the_qos_class_depends_on_cpu_and_memory(resources: dict[str, Any], expected: str) -> None:
    assert qos_class({"containers": [{"resources": resources}]}) == expected


def test_one_container_without_limits_makes_a_pod_burstable() -> None:
    sure = {"resources": {side: {"cpu": "1", "memory": "1Gi"} for side in ("limits", "requests")}}

    assert qos_class({"containers": [sure, sure]}) == "Guaranteed"
    assert qos_class({"containers": [sure, {}]}) == "Burstable"


def test_a_gated_pod_has_the_condition_scheduling_gated() -> None:
    (condition,) = created(pod(schedulingGates=[{"name": "a.b/c"}]))["status"]["conditions"]

    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_a_pod_status_update_keeps_omitted_fields() -> None:
    live = created(pod())
    ready = {"type": "Ready", "status": "True", "observedGeneration": 3}
    live["status"] = {**live["status"], "observedGeneration": 3, "conditions": [ready]}

    status = updated(
        live, {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}, "status"
    )

    assert status["status"]["qosClass"] == "BestEffort"
    assert status["status"]["observedGeneration"] == 3
    assert status["status"]["conditions"] == [{"type": "Ready", "status": "False", "observedGeneration": 3}]


def test_a_resize_changes_resources_and_nothing_else() -> None:
    live = created(pod())
    container = {**live["spec"]["containers"][0], "image": "other", "resources": {"requests": {"cpu": "2"}}}

    resized = updated(live, {"spec.containers": [container], "metadata.labels": {"a": "b"}}, "resize")

    assert resized["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert resized["spec"]["containers"][0]["image"] == "i:1"
    assert "labels" not in resized["metadata"]
    assert resized["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("spec", "phase", "requested_s", "grace_s"),
    [
        ({}, "Pending", 10, 0),
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n"}, "Running", 5, 5),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -1, 1),
        ({"nodeName": "n"}, "Succeeded", None, 0),
    ],
)
def test_only_scheduled_pods_are_deleted_gracefully(
    spec: dict[str, Any], phase: str, requested_s: int | None, grace_s: int
) -> None:
    value = created(pod(**spec))
    value["status"]["phase"] = phase

    assert deletion_grace_s(resource_of(value), value, requested_s) == grace_s
    assert deletion_grace_s(resource_of(deployment()), deployment(), 5) is None
