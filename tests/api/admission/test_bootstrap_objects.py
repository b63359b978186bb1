"""The objects that exist from the start."""

from __future__ import annotations

from tests.api.admission.admission_cluster import Cluster, resource_of

from batkube.api.admission.bootstrap_objects import bootstrap_objects
from batkube.cluster.store import Key
from batkube.kernel.instants import START


def test_the_bootstrap_objects_pass_admission() -> None:
    cluster = Cluster()
    names = []
    for value in bootstrap_objects(6443):
        resource = resource_of(value)
        namespace = value["metadata"].get("namespace", "")
        if namespace:
            assert cluster.store.get("namespaces", Key(namespace)) is not None, "namespaces come first"
        obj = cluster.write(value)
        name = obj["metadata"]["name"]
        key = Key(f"{namespace}/{name}" if namespace else name)
        cluster.store.create(resource.storage, [key], [obj], START)
        names.append(f"{value['kind']} {name}")

    assert len(names) == len(set(names))
    assert {"Namespace default", "PriorityClass system-node-critical", "Service kubernetes"} <= set(names)
    kubernetes = cluster.store.get("services", Key("default/kubernetes"))
    assert kubernetes is not None
    assert kubernetes["spec"]["clusterIP"] == "10.96.0.1"
