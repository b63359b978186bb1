"""EndpointSlices mirrored from Endpoints."""

from __future__ import annotations

from tests.controllers.services.manifests import ENDPOINTS, SERVICE, SLICE, service, slices
from tests.simulated_cluster import Cluster


def test_endpoints_of_a_service_without_selector_are_mirrored(world: Cluster) -> None:
    world.create(SERVICE, service(selector=None))
    endpoints = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "web", "namespace": "default"},
        "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80, "protocol": "TCP"}]}],
    }
    world.create(ENDPOINTS, endpoints)
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
