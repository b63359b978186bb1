"""Components write through the API if there is one, each under its own name, and else to the store."""

from __future__ import annotations

from typing import Any

from batkube.cluster.client import BulkClient
from batkube.cluster.store import Key
from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.kernel.instants import START
from batkube.kernel.streams import Streams
from conformance.direct import Direct

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "nginx"}]},
}


def test_without_an_api_objects_are_stored_as_they_are_described() -> None:
    world = World(Streams(0))
    access = Access.of_world(world, None)

    access.client("kubelet").create_copies("pods", POD, [Key("default/web")], ["uid-1"], START)

    assert not access.is_api
    assert world.store.get("pods", Key("default/web"))["spec"] == POD["spec"]


def test_without_an_api_all_components_share_a_client() -> None:
    access = Access.of_world(World(Streams(0)), None)

    assert access.client("kubelet") is access.client("kube-scheduler")


def test_through_an_api_objects_get_defaults() -> None:
    direct = Direct()
    direct.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    access = Access.of_world(World(Streams(0), store=direct.store), direct.api.client)

    access.client("kubelet").create("pods", POD, START)

    assert access.is_api
    stored = direct.store.get("pods", Key("default/web"))
    assert stored["spec"]["terminationGracePeriodSeconds"] == 30


def test_through_an_api_each_component_has_its_own_client() -> None:
    names: list[str] = []

    def api_client(component: str) -> BulkClient:
        names.append(component)
        return Access.of_world(World(Streams(0)), None).client(component)

    access = Access.of_world(World(Streams(0)), api_client)
    access.client("kubelet")
    access.client("kube-scheduler")

    assert names == ["kubelet", "kube-scheduler"]
