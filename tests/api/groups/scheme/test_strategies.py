"""Strategies: fields that clients cannot set or change, and generations."""

from __future__ import annotations

from typing import Any

import pytest
from tests.api.groups.prepared_objects import created, deployment, made, pod, resource_of, updated

from batkube.api.groups.kind_model.strategy import DEFAULT
from batkube.api.groups.scheme.catalogue import KINDS
from batkube.api.groups.scheme.strategies import default_propagation, strategy_of
from batkube.cluster.kinds import KUBERNETES_VERSIONS, KindTable


@pytest.mark.parametrize(
    ("value", "status"),
    [
        (deployment(), {}),
        (made("PodDisruptionBudget", "policy/v1", spec={}), {
            "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
        }),
        (made("Service", "v1", spec={"ports": [{"port": 1}]}), {"loadBalancer": {}}),
        (made("PersistentVolumeClaim", "v1", spec={}), {"phase": "Pending"}),
        (pod(), {"phase": "Pending", "qosClass": "BestEffort"}),
        (made("HorizontalPodAutoscaler", "autoscaling/v2", spec={}), {"desiredReplicas": 0, "currentMetrics": None}),
    ],
    ids=lambda each: each.get("kind", "") if isinstance(each, dict) else "",
)  # fmt: skip
def test_the_status_of_a_new_object_is_reset(value: dict[str, Any], status: dict[str, Any]) -> None:
    sent = {**value, "status": {"phase": "Bound"}}

    assert created(sent)["status"] == status


def test_a_new_node_keeps_the_status_that_its_kubelet_sends() -> None:
    node = created(made("Node", "v1", status={"capacity": {"cpu": "4"}}))

    assert node["status"]["capacity"] == node["status"]["allocatable"] == {"cpu": "4"}


def test_only_changes_of_the_spec_increment_the_generation() -> None:
    live = created(deployment())

    assert live["metadata"]["generation"] == 1
    assert updated(live, {"spec.replicas": 3})["metadata"]["generation"] == 2
    assert updated(live, {"metadata.annotations": {"a": "b"}})["metadata"]["generation"] == 2
    assert updated(live, {"metadata.labels": {"a": "b"}})["metadata"]["generation"] == 1
    assert updated(live, {"status.replicas": 3})["metadata"]["generation"] == 1


def test_an_update_keeps_the_status_and_a_status_update_keeps_the_rest() -> None:
    live = created(deployment())

    whole = updated(live, {"spec.replicas": 3, "status.replicas": 3})
    status = updated(live, {"spec.replicas": 3, "status.replicas": 3, "metadata.labels": {"l": "m"}}, "status")

    assert (whole["spec"]["replicas"], whole["status"]) == (3, {})
    assert (status["spec"]["replicas"], status["status"]) == (1, {"replicas": 3})
    assert "labels" not in status["metadata"]
    assert status["metadata"]["generation"] == 1


def test_every_strategy_belongs_to_a_served_kind() -> None:
    served: set[str] = set()
    for kubernetes in KUBERNETES_VERSIONS:
        table = KindTable.builtin(kubernetes)
        for version in table.optional_versions:
            table.serve(*version.split("/"))
        served |= {resource.storage for resource in table.resources()}

    assert {name for name, kind in KINDS.items() if kind.strategy != DEFAULT} <= served


def test_kinds_differ_in_create_on_update_and_default_propagation() -> None:
    lease, job = made("Lease", "coordination.k8s.io/v1"), made("Job", "batch/v1")

    assert strategy_of("leases.coordination.k8s.io").allow_create_on_update
    assert not strategy_of("leases.coordination.k8s.io").allow_unconditional_update
    assert not strategy_of("pods").allow_create_on_update
    assert default_propagation(resource_of(job)) == "Orphan"
    assert default_propagation(resource_of(lease)) == "Background"
