"""Strategy of ResourceClaims: status of deallocated devices, and permission for admin access.

Kubernetes: pkg/registry/resource/resourceclaim/strategy.go and pkg/registry/resource/utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.resource.device_validation import device_id
from batkube.api.validation.problems import Problems
from batkube.cluster.object_meta import labels_of
from batkube.cluster.store import Key

_LABEL = "resource.kubernetes.io/admin-access"


def drop_deallocated_device_statuses(new: dict[str, Any], old: dict[str, Any], context: StrategyContext) -> None:
    """Drop the status of devices that are no longer allocated (Kubernetes: dropDeallocatedStatusDevices)."""
    status = new.get("status", {})
    current = {device_id(result) for result in _allocation_results(new)}
    lost = {device_id(result) for result in _allocation_results(old)} - current
    if lost and (devices := status.get("devices")):
        status["devices"] = [device for device in devices if device_id(device) not in lost]
        if not status["devices"]:
            del status["devices"]


def authorize_claim(
    value: Mapping[str, Any], old: Mapping[str, Any] | None, context: StrategyContext, problems: Problems
) -> None:
    """Reject a new claim or allocation with admin access unless the namespace allows it."""
    if old is None:
        _authorize_requests(value, value.get("spec", {}), context, problems)
    elif not any(result.get("adminAccess") for result in _allocation_results(old)):
        _reject_first(_allocation_results(value), "status.allocation.devices.results", value, context, problems)


def authorize_template(
    value: Mapping[str, Any], old: Mapping[str, Any] | None, context: StrategyContext, problems: Problems
) -> None:
    """Reject a new template with admin access; as in kube-apiserver, the error path omits the template."""
    if old is None:
        _authorize_requests(value, value.get("spec", {}).get("spec", {}), context, problems)


def _authorize_requests(
    value: Mapping[str, Any], spec: Mapping[str, Any], context: StrategyContext, problems: Problems
) -> None:
    requests = spec.get("devices", {}).get("requests") or ()
    exact = [request.get("exactly") or {} for request in requests]
    _reject_first(exact, "spec.devices.requests", value, context, problems)


def _reject_first(
    device_requests: Iterable[Mapping[str, Any]],
    path: str,
    value: Mapping[str, Any],
    context: StrategyContext,
    problems: Problems,
) -> None:
    index = next(
        (index for index, device_request in enumerate(device_requests) if device_request.get("adminAccess")), None
    )
    if index is None:
        return
    namespace = context.store.get("namespaces", Key(value["metadata"]["namespace"]))
    if namespace is None or labels_of(namespace).get(_LABEL) != "true":
        detail = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
        problems.forbidden(f"{path}[{index}].adminAccess", detail)


def _allocation_results(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    allocation = claim.get("status", {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []
