"""Defaults of nodes and claims, and the expansion of claims."""

from __future__ import annotations

from typing import Any

from tests.api.admission.admission_cluster import Cluster, made


def test_a_new_node_is_tainted_as_not_ready(cluster: Cluster) -> None:
    node = cluster.write(made("Node", "a"))

    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    assert cluster.write(made("Node", "a"), old=node)["spec"] == {}


def test_claims_get_a_finalizer_and_the_newest_default_class(cluster: Cluster) -> None:
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    for name, year in (("old", 2001), ("new", 2002), ("other", 2003)):
        value = made("StorageClass", name, "storage.k8s.io/v1", provisioner="p")
        value["metadata"].update(creationTimestamp=f"{year}-01-01T00:00:00Z")
        if name != "other":
            value["metadata"]["annotations"] = marked
        cluster.put(value)

    claim = cluster.write(made("PersistentVolumeClaim", "c", spec={}))
    own = cluster.write(made("PersistentVolumeClaim", "c", spec={"storageClassName": ""}))

    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert (claim["spec"]["storageClassName"], own["spec"]["storageClassName"]) == ("new", "")


def test_only_bound_claims_of_expandable_classes_can_grow(cluster: Cluster) -> None:
    cluster.put(made("StorageClass", "fast", "storage.k8s.io/v1", provisioner="p", allowVolumeExpansion=True))

    def claim(size: str, name: str = "fast") -> dict[str, Any]:
        requests = {"requests": {"storage": size}}
        return made("PersistentVolumeClaim", "c", spec={"storageClassName": name, "resources": requests})

    live = cluster.write(claim("1Gi"))
    bound = {**live, "status": {"phase": "Bound"}}

    assert "Only bound persistent volume claims can be expanded" in cluster.refusal(claim("2Gi"), old=live)
    assert cluster.write(claim("2Gi"), old=bound)["spec"]["resources"]["requests"] == {"storage": "2Gi"}
    assert "must support resize" in cluster.refusal(claim("2Gi", "slow"), old=bound)
