"""RuntimeClasses: overhead and scheduling constraints of pods."""

from __future__ import annotations

from tests.api.admission.admission_cluster import Cluster, made, pod


def test_a_runtime_class_adds_its_overhead_and_scheduling_constraints(cluster: Cluster) -> None:
    overhead = {"podFixed": {"cpu": "100m"}}
    scheduling = {"nodeSelector": {"runtime": "kata"}}
    cluster.put(made("RuntimeClass", "kata", "node.k8s.io/v1", handler="k", overhead=overhead, scheduling=scheduling))

    spec = cluster.write(pod(runtimeClassName="kata", nodeSelector={"a": "b"}))["spec"]

    assert spec["overhead"] == {"cpu": "100m"}
    assert spec["nodeSelector"] == {"a": "b", "runtime": "kata"}
    assert "conflict: runtimeClass" in cluster.refusal(pod(runtimeClassName="kata", nodeSelector={"runtime": "x"}))
    assert 'RuntimeClass "nope" not found' in cluster.refusal(pod(runtimeClassName="nope"))
    assert "Pod Overhead set without corresponding" in cluster.refusal(pod(overhead={"cpu": "1"}))
