"""What schedulers count for a pod, and what a node offers."""

from __future__ import annotations

from typing import Any

from batkube.cluster.pods.resources import add_amounts, allocatable_of, demand_of, spec_demand


def container(name: str, cpu: str, **more: object) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}


def resized(spec_cpu: str, status: dict[str, Any], conditions: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "metadata": {"generation": 2},
        "spec": {"containers": [container("c", spec_cpu)]},
        "status": {"containerStatuses": [{"name": "c", **status}], "conditions": conditions or []},
    }


def test_init_containers_count_only_as_far_as_they_exceed_the_containers() -> None:
    """The effective request is the higher of both (concepts/workloads/pods/init-containers)."""
    spec = {"containers": [container("a", "1"), container("b", "500m")], "initContainers": [container("i", "1200m")]}
    assert spec_demand(spec) == {"cpu": 1500, "pods": 1}

    spec["initContainers"] = [container("i", "2"), container("j", "1")]
    assert spec_demand(spec) == {"cpu": 2000, "pods": 1}


def test_a_sidecar_counts_beside_the_containers() -> None:
    sidecar = container("s", "250m", restartPolicy="Always")

    assert spec_demand({"containers": [container("a", "1")], "initContainers": [sidecar]})["cpu"] == 1250


def test_a_pod_without_requests_takes_one_unit_of_pods() -> None:
    assert spec_demand({"containers": [{"name": "c"}]}) == {"pods": 1}


def test_a_request_beyond_an_int64_fits_on_no_node() -> None:
    assert spec_demand({"containers": [container("c", "1e30")]})["cpu"] >= 2**63 - 1


def test_a_resize_in_progress_counts_the_largest_of_desired_allocated_and_actual_requests() -> None:
    """KEP-1287: max(spec…requests, status…allocatedResources, status…resources.requests)."""
    status = {"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}

    assert demand_of(resized("1", status))["cpu"] == 3000
    assert demand_of(resized("4", status))["cpu"] == 4000


def test_desired_requests_of_an_infeasible_resize_do_not_count() -> None:
    status = {"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "2"}}}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]

    assert demand_of(resized("64", status, conditions))["cpu"] == 2000
    assert demand_of(resized("64", status, [{**conditions[0], "reason": "Deferred"}]))["cpu"] == 64_000


def test_a_node_offers_its_allocatable_and_its_capacity_if_that_is_missing() -> None:
    capacity = {"cpu": "4", "memory": "1Ki", "nvidia.com/gpu": "2"}

    assert allocatable_of({"status": {"capacity": capacity, "allocatable": {"cpu": "3500m"}}}) == {"cpu": 3500}
    assert allocatable_of({"status": {"capacity": capacity}}) == {"cpu": 4000, "memory": 1024, "nvidia.com/gpu": 2}
    assert allocatable_of({}) == {}


def test_amounts_are_added_and_subtracted_again() -> None:
    total = {"cpu": 1000}
    add_amounts(total, {"cpu": 500, "pods": 1})
    assert total == {"cpu": 1500, "pods": 1}

    add_amounts(total, {"cpu": 500, "pods": 1}, -1)
    assert total == {"cpu": 1000, "pods": 0}
