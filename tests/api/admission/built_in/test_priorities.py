"""Priorities of pods by their PriorityClass."""

from __future__ import annotations

from tests.api.admission.admission_cluster import Cluster, made, pod


def test_a_pod_gets_the_priority_of_its_class(cluster: Cluster) -> None:
    cluster.put(made("PriorityClass", "high", "scheduling.k8s.io/v1", value=7, preemptionPolicy="Never"))

    chosen, none = cluster.write(pod(priorityClassName="high"))["spec"], cluster.write(pod())["spec"]

    assert (chosen["priority"], chosen["preemptionPolicy"]) == (7, "Never")
    assert (none["priority"], none["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in none


def test_pods_without_a_class_get_the_single_default_one(cluster: Cluster) -> None:
    cluster.put(made("PriorityClass", "usual", "scheduling.k8s.io/v1", value=3, globalDefault=True))

    spec = cluster.write(pod())["spec"]
    second = made("PriorityClass", "other", "scheduling.k8s.io/v1", value=4, globalDefault=True)

    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 3)
    assert "PriorityClass usual is already marked as default" in cluster.refusal(second)


def test_an_unknown_class_and_an_explicit_priority_are_rejected(cluster: Cluster) -> None:
    assert "no PriorityClass with name nope was found" in cluster.refusal(pod(priorityClassName="nope"))
    assert "the integer value of priority (5) must not be provided" in cluster.refusal(pod(priority=5))
