"""API services: what this server serves itself is always available. Kubernetes: kube-aggregator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.context import Context
from batkube.api.groups.filling import struct
from batkube.api.groups.kind import Kind
from batkube.api.groups.strategy import FAR_APART, Strategy
from batkube.kernel.instants import rfc3339

# Defaults


def fill_api_service(obj: dict[str, Any]) -> None:
    """A server that is asked for a group listens where servers do."""
    service = struct(obj, "spec").get("service")
    if service is not None:
        service.setdefault("port", 443)


# Strategy


def create_api_service(service: dict[str, Any], context: Context) -> None:
    """What this server serves itself is always available."""
    if (service.get("spec") or {}).get("service") is None:
        condition = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": rfc3339(context.now),
            "reason": "Local",
            "message": "Local APIServices are always available",
        }
        service["status"] = {"conditions": [condition]}


#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "apiservices.apiregistration.k8s.io": Kind(
        defaults={"v1": fill_api_service},
        strategy=Strategy(keeps=FAR_APART, unconditional=False),
        prepare=create_api_service,
    ),
}
