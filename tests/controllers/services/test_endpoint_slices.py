"""EndpointSlices of Services."""

from __future__ import annotations

from tests.controllers.services.manifests import ENDPOINTS, SERVICE, backend, service, slices
from tests.simulated_cluster import Cluster


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


def test_more_than_a_hundred_endpoints_need_a_second_slice(make_world: type[Cluster]) -> None:
    world = make_world("2x64,64Gi")
    world.create(SERVICE, service())
    for number in range(130):
        world.create("pods", backend(world, f"pod-{number:03}"))
    world.run(2)
    assert sorted(len(one["endpoints"]) for one in slices(world)) == [30, 100]
    assert len(world.get(ENDPOINTS, "default/web")["subsets"][0]["addresses"]) == 130
