"""Endpoints and EndpointSlices of Services with a selector."""

from __future__ import annotations

from tests.controllers.services.manifests import ENDPOINTS, SERVICE, SLICE, backend, service, slices
from tests.simulated_cluster import Cluster

from batkube.controllers.services.endpoints import repack_subsets


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


def test_endpoints_are_deleted_with_their_service(world: Cluster) -> None:
    world.create(SERVICE, service())
    world.create("pods", backend(world, "a"))
    world.run(1)
    world.delete(SERVICE, "default/web")
    world.run(1)
    assert not world.store.all(ENDPOINTS)
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
