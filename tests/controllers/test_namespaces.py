"""Namespaces that go take everything along, and new ones get their service account."""

from __future__ import annotations

from tests.controllers.conftest import World


def make_namespace(world: World, name: str) -> None:
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name},
        "spec": {"finalizers": ["kubernetes"]},
    }
    world.create("namespaces", namespace)
    world.run(1)


def test_every_namespace_has_its_default_account_and_gets_it_back(world: World) -> None:
    make_namespace(world, "lab")
    world.get("serviceaccounts", "lab/default")
    world.delete("serviceaccounts", "lab/default")
    world.run(1)
    world.get("serviceaccounts", "lab/default")


def test_a_namespace_goes_when_it_is_empty_and_says_what_it_waits_for(world: World) -> None:
    make_namespace(world, "lab")
    held = world.pod("held", {"batkube.io/stop-time": "10s"})
    held["metadata"]["namespace"] = "lab"
    world.create("pods", held)
    world.run(1)
    world.delete("namespaces", "lab")
    world.run(5)
    conditions = {one["type"]: one for one in world.get("namespaces", "lab")["status"]["conditions"]}
    remaining = conditions["NamespaceContentRemaining"]
    assert remaining["status"] == "True"
    assert "pods. has 1 resource instances" in remaining["message"]
    assert conditions["NamespaceDeletionDiscoveryFailure"]["status"] == "False"
    assert world.store.get("serviceaccounts", "lab/default") is None  # type: ignore[arg-type]
    world.run(10)
    assert "lab" not in world.store.all("namespaces")
    assert not world.pods()
