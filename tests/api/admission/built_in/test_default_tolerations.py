"""Default tolerations of failed nodes."""

from __future__ import annotations

from tests.api.admission.admission_cluster import Cluster, pod


def test_a_pod_tolerates_a_failed_node_for_five_minutes_by_default(cluster: Cluster) -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}

    usual = cluster.write(pod())["spec"]["tolerations"]
    some = cluster.write(pod(tolerations=[own]))["spec"]["tolerations"]
    all_of_them = cluster.write(pod(tolerations=[{"operator": "Exists"}]))["spec"]["tolerations"]

    assert [each["tolerationSeconds"] for each in usual] == [300, 300]
    assert [each["key"].rpartition("/")[2] for each in some] == ["not-ready", "unreachable"]
    assert all_of_them == [{"operator": "Exists"}]
