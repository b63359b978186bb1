"""Matches on a cache use free and open nodes only."""

from __future__ import annotations

from tests.kubeflux.conftest import a_node, a_pod

from batkube.kubeflux.scheduler_cache import SchedulerCache


def test_a_match_uses_free_resources_of_open_nodes() -> None:
    nodes = [a_node("n0"), a_node("n1", "8"), a_node("n2", state="cordoned")]
    pods = [a_pod("other", "2500m", "n0", "others", "Running")]
    cache = SchedulerCache.build(nodes, pods)

    assert cache.free_vertices() == {"n0": {"core": 1, "memory": 8}, "n1": {"core": 8, "memory": 8, "gpu": 2}}
    assert cache.match([{"cpu": 2000}] * 4) == ["n1"] * 4
    assert cache.match([{"cpu": 2000}] * 5) is None
    assert cache.match([{"cpu": 1000}], frozenset({"n0"})) == ["n0"]
    assert cache.match([{"nvidia.com/gpu": 3}]) is None
    assert cache.match([{"example.com/fpga": 1}]) is None
