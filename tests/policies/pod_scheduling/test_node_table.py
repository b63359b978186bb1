"""The table of nodes: what is counted for bound pods."""

from __future__ import annotations

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import Instant
from batkube.policies.pod_scheduling.node_table import NodeTable

NOW = Instant(0)
LOW, HIGH = Key("default/low"), Key("default/high")


def pod(priority: int, node: str) -> KubeObject:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    spec = {"priority": priority, "containers": [container]} | ({"nodeName": node} if node else {})
    return {"metadata": {}, "spec": spec, "status": {"phase": "Pending"}}


def test_bound_pods_that_run_count_as_pods_of_lower_priority() -> None:
    """Preemption reads all bound pods only if one of them has a lower priority."""
    store = Store()
    table = NodeTable(store)
    node = {"metadata": {"name": "a"}, "spec": {}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}}
    store.create(NODE, [Key("a")], [node], NOW)

    store.create(POD, [LOW, HIGH], [pod(3, ""), pod(5, "a")], NOW)
    assert [table.has_lower_priority(priority) for priority in (5, 6)] == [False, True]

    store.replace(POD, [LOW], [pod(3, "a")], NOW)
    assert [table.has_lower_priority(priority) for priority in (3, 4)] == [False, True]

    store.delete(POD, [LOW], NOW)
    assert [table.has_lower_priority(priority) for priority in (5, 6)] == [False, True]

    store.set_statuses(POD, [HIGH], {"phase": "Succeeded"}, NOW)
    assert not table.has_lower_priority(100)
