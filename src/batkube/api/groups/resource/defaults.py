"""Defaults of claims to devices. Kubernetes: pkg/apis/resource/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.filling import fill_empty, structs


def fill_resource_claim(obj: dict[str, Any]) -> None:
    """One device for each request that does not say how many."""
    _devices(obj.get("spec") or {})
    allocation = (obj.get("status") or {}).get("allocation") or {}
    for result in structs(allocation.get("devices") or {}, "results"):
        _device_tolerations(result)


def fill_resource_claim_template(obj: dict[str, Any]) -> None:
    """The defaults that the claims made of it will have."""
    _devices((obj.get("spec") or {}).get("spec") or {})


def _devices(spec: dict[str, Any]) -> None:
    for request in structs(spec.get("devices") or {}, "requests"):
        alternatives = list(structs(request, "firstAvailable"))
        if request.get("exactly") is not None:
            alternatives.append(request["exactly"])
        for alternative in alternatives:
            fill_empty(alternative, {"allocationMode": "ExactCount"})
            if alternative["allocationMode"] == "ExactCount":
                fill_empty(alternative, {"count": 1})
            _device_tolerations(alternative)


def _device_tolerations(holder: dict[str, Any]) -> None:
    for toleration in structs(holder, "tolerations"):
        fill_empty(toleration, {"operator": "Equal"})
