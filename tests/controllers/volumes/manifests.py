"""Manifests of volumes, claims and storage classes, and the phases of volumes."""

from __future__ import annotations

from typing import Any

from tests.simulated_cluster import Cluster

CLAIM, VOLUME, CLASS = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"


def claim(name: str = "data", size: str = "1Gi", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "finalizers": ["kubernetes.io/pvc-protection"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
        "status": {"phase": "Pending"},
    }


def volume(name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "finalizers": ["kubernetes.io/pv-protection"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, **spec},
        "status": {"phase": "Pending"},
    }


def storage_class(mode: str = "Immediate", **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "disks.example.com",
        "volumeBindingMode": mode,
        **fields,
    }


def user(world: Cluster, name: str = "user", claim_name: str = "data") -> dict[str, Any]:
    return world.pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}])


def phases(world: Cluster) -> dict[str, str]:
    return {one["metadata"]["name"]: one["status"]["phase"] for one in world.store.all(VOLUME).values()}
