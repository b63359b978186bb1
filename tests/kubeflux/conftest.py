"""Nodes and pods for tests of the scheduler's cache."""

from __future__ import annotations

from batkube.cluster.store import KubeObject

SCHEDULER = "kubeflux"


def a_node(name: str, cpu: str = "4", *, state: str = "", zone: str = "") -> KubeObject:
    """Return a node; `state` is cordoned, tainted, excluded or not ready."""
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    spec: KubeObject = {"unschedulable": True} if state == "cordoned" else {}
    if state == "tainted":
        spec["taints"] = [{"key": "spot", "effect": "NoSchedule"}]
    if state == "excluded":
        labels["fluence/skip"] = ""
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110", **({"nvidia.com/gpu": "2"} if cpu == "8" else {})}
    conditions = [{"type": "Ready", "status": "Unknown" if state == "not ready" else "True"}]
    status = {"allocatable": allocatable, "conditions": conditions}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def a_pod(name: str, cpu: str, node: str = "", scheduler: str = SCHEDULER, phase: str = "Pending") -> KubeObject:
    """Return a pod with one container."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec: KubeObject = {"schedulerName": scheduler, "containers": [container]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}
