"""Manifests of Services and their pods."""

from __future__ import annotations

from typing import Any

from tests.simulated_cluster import Cluster

SERVICE, ENDPOINTS, SLICE = "services", "endpoints", "endpointslices.discovery.k8s.io"


def service(name: str = "web", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": {"team": "a"}},
        "spec": {
            "clusterIP": "10.96.0.9",
            "ipFamilies": ["IPv4"],
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
            **spec,
        },
    }


def backend(world: Cluster, name: str, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    pod = world.pod(name, cpu="100m", **spec)
    return {**pod, "metadata": {**pod["metadata"], "labels": {"app": "web"}}}


def slices(world: Cluster) -> list[dict[str, Any]]:
    return list(world.store.all(SLICE).values())
