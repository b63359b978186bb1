"""Defaults of ResourceClaims. Kubernetes: pkg/apis/resource/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.kind_model.defaults import fill_empty, list_items


def set_resource_claim_defaults(obj: dict[str, Any]) -> None:
    """Set the allocation mode ExactCount with one device in requests that do not set it."""
    _set_device_request_defaults(obj.get("spec") or {})
    allocation = (obj.get("status") or {}).get("allocation") or {}
    for result in list_items(allocation.get("devices") or {}, "results"):
        _set_device_toleration_defaults(result)


def set_resource_claim_template_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults in a ResourceClaimTemplate."""
    _set_device_request_defaults((obj.get("spec") or {}).get("spec") or {})


def _set_device_request_defaults(spec: dict[str, Any]) -> None:
    for request in list_items(spec.get("devices") or {}, "requests"):
        alternatives = list(list_items(request, "firstAvailable"))
        if request.get("exactly") is not None:
            alternatives.append(request["exactly"])
        for alternative in alternatives:
            fill_empty(alternative, {"allocationMode": "ExactCount"})
            if alternative["allocationMode"] == "ExactCount":
                fill_empty(alternative, {"count": 1})
            _set_device_toleration_defaults(alternative)


def _set_device_toleration_defaults(holder: dict[str, Any]) -> None:
    for toleration in list_items(holder, "tolerations"):
        fill_empty(toleration, {"operator": "Equal"})
