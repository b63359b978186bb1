"""Endpoints and EndpointSlices of Services, and slices mirrored from Endpoints."""

from __future__ import annotations

from typing import Any

from tests.controllers.conftest import Cluster

from batkube.controllers.services.endpoints import repack_subsets

SERVICE, ENDPOINTS, SLICE = "services", "endpoints", "endpointslices.discovery.k8s.io"


def service(name: str = "web", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": {"team": "a"}},
        "spec": {
            "clusterIP": "10.96.0.9",
            "ipFamilies": ["IPv4"],
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
            **spec,
        },
    }


def backend(world: Cluster, name: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    pod = world.pod(name, cpu="100m", **spec)
    return {**pod, "metadata": {**pod["metadata"], "labels": {"app": "web"}}}


def slices(world: Cluster) -> list[dict[str, Any]]:
    return list(world.store.all(SLICE).values())


def test_a_service_without_pods_has_empty_endpoints(world: Cluster) -> None:
    world.create(SERVICE, service())
    world.run(1)
    assert "subsets" not in world.get(ENDPOINTS, "default/web")
    (one,) = slices(world)
    assert (one["addressType"], one["endpoints"], one["ports"]) == ("IPv4", [], [])


def test_pods_appear_in_endpoints_once_they_are_ready(world: Cluster) -> None:
    world.create(SERVICE, service())
    world.run(1)
    before = slices(world)[0]["metadata"]["name"]
    key = world.create("pods", backend(world, "a"))
    slow = backend(world, "slow")
    slow["spec"]["containers"][0]["readinessProbe"] = {"initialDelaySeconds": 20}
    world.create("pods", slow)
    world.run(1)
    address = world.get("pods", key)["status"]["podIP"]
    endpoints = world.get(ENDPOINTS, "default/web")
    (subset,) = endpoints["subsets"]
    assert [one["ip"] for one in subset["addresses"]] == [address]
    assert [one["targetRef"]["name"] for one in subset["notReadyAddresses"]] == ["slow"]
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert endpoints["metadata"]["labels"] == {
        "team": "a",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    }
    (one,) = slices(world)
    assert one["metadata"]["name"] == before
    assert one["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert one["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert [endpoint["conditions"] for endpoint in one["endpoints"]] == [
        {"ready": True, "serving": True, "terminating": False},
        {"ready": False, "serving": False, "terminating": False},
    ]
    world.run(20)
    assert len(world.get(ENDPOINTS, "default/web")["subsets"][0]["addresses"]) == 2


def test_a_deleted_pod_is_terminating_in_its_slice_and_then_removed(world: Cluster) -> None:
    world.create(SERVICE, service())
    world.create("pods", backend(world, "a", terminationGracePeriodSeconds=30))
    pod = world.get("pods", "default/a")
    pod["metadata"]["annotations"] = {"batkube.io/stop-time": "10s"}
    world.run(1)
    world.delete("pods", "default/a")
    world.run(1)
    assert "subsets" not in world.get(ENDPOINTS, "default/web")
    assert slices(world)[0]["endpoints"][0]["conditions"] == {"ready": False, "serving": True, "terminating": True}
    world.run(15)
    assert slices(world)[0]["endpoints"] == []


def test_ports_are_resolved_by_name_and_pods_without_them_are_skipped(world: Cluster) -> None:
    world.create(SERVICE, service(ports=[{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}]))
    named = backend(world, "named")
    named["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": 9090, "protocol": "TCP"}]
    world.create("pods", named)
    world.create("pods", backend(world, "other"))
    world.run(1)
    (subset,) = world.get(ENDPOINTS, "default/web")["subsets"]
    assert [one["targetRef"]["name"] for one in subset["addresses"]] == ["named"]
    assert subset["ports"][0]["port"] == 9090
    assert sorted(len(one["ports"]) for one in slices(world)) == [0, 1]


def test_more_than_a_hundred_endpoints_need_a_second_slice(make_world: type[Cluster]) -> None:
    world = make_world("2x64,64Gi")
    world.create(SERVICE, service())
    for number in range(130):
        world.create("pods", backend(world, f"pod-{number:03}"))
    world.run(2)
    assert sorted(len(one["endpoints"]) for one in slices(world)) == [30, 100]
    assert len(world.get(ENDPOINTS, "default/web")["subsets"][0]["addresses"]) == 130


def test_endpoints_are_deleted_with_their_service(world: Cluster) -> None:
    world.create(SERVICE, service())
    world.create("pods", backend(world, "a"))
    world.run(1)
    world.delete(SERVICE, "default/web")
    world.run(1)
    assert not world.store.all(ENDPOINTS)
    assert not world.store.all(SLICE)


def test_endpoints_of_a_service_without_selector_are_mirrored(world: Cluster) -> None:
    world.create(SERVICE, service(selector=None))
    kept = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "web", "namespace": "default"},
        "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80, "protocol": "TCP"}]}],
    }
    world.create(ENDPOINTS, kept)
    world.run(1)
    (one,) = slices(world)
    assert one["endpoints"] == [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}]
    assert one["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] == (
        "endpointslicemirroring-controller.k8s.io"
    )
    changed = world.get(ENDPOINTS, "default/web")
    subset = {**changed["subsets"][0], "addresses": [{"ip": "10.1.2.4"}]}
    world.api.update(ENDPOINTS, {**changed, "subsets": [subset]}, world.now)
    world.run(1)
    assert [one["endpoints"][0]["addresses"] for one in slices(world)] == [["10.1.2.4"]]
    world.delete(ENDPOINTS, "default/web")
    world.run(1)
    assert not world.store.all(SLICE)


def test_ports_with_the_same_addresses_are_packed_together() -> None:
    one, two = {"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}
    http, https = {"port": 80}, {"port": 443}
    assert repack_subsets([{"addresses": [one], "ports": [http]}, {"addresses": [one], "ports": [https]}]) == [
        {"addresses": [one], "ports": [http, https]}
    ]
    assert repack_subsets(
        [{"addresses": [two, one], "ports": [http]}, {"notReadyAddresses": [one], "ports": [http]}]
    ) == [{"addresses": [two], "notReadyAddresses": [one], "ports": [http]}]
