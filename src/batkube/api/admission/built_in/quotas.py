"""ResourceQuota: limits the total usage of the objects in a namespace.

Admission adds the usage of a new object to the quota's `status.used` before the object is created; only the quota
controller ever reduces it. A quota whose `status.hard` is not set yet limits nothing.
Kubernetes: apiserver/pkg/admission/plugin/resourcequota/controller.go.
"""

from __future__ import annotations

from typing import Any

from batkube.api.admission.built_in.quota_usage import (
    REQUIRED_AMOUNTS,
    compute_usage,
    counts_towards,
    is_terminating,
    matches_scopes,
    usage_of,
)
from batkube.api.admission.request import AdmissionRequest
from batkube.api.groups.core.pods.resource_totals import PodResourceAmounts
from batkube.cluster.store import Key, KubeObject
from batkube.kernel.quantities import Quantity, parse_quantity

QuotaCharges = list[tuple[Key, KubeObject]]
"""Quotas with increased usage, to be written before the object that uses them."""

_UNCOUNTED_RESOURCES = ("events",)


def charge_quotas(request: AdmissionRequest) -> QuotaCharges:
    """Charge the namespace's quotas with the write; raises a 403 if it exceeds one."""
    if not request.namespace or request.resource.storage in _UNCOUNTED_RESOURCES:
        return []
    quotas = list(request.objects_in_namespace("resourcequotas"))
    if not quotas or not _can_change_usage(request):
        return []
    charged = [(key, quota) for key, quota in quotas if _is_limited_by(request, quota)]
    used = usage_of(request.resource, request.value)
    before = usage_of(request.resource, request.old) if request.old is not None else {}
    charges: QuotaCharges = []
    for key, quota in charged:
        charged_before = before if request.old is not None and _quota_matches(request, request.old, quota) else {}
        added = _increase(used, charged_before)
        if added:
            charges.append((key, _charge_quota(request, quota, added)))
    return charges


def _can_change_usage(request: AdmissionRequest) -> bool:
    """Return whether this kind of write can change the usage (Kubernetes: Handles of the evaluators)."""
    storage, old = request.resource.storage, request.old
    if storage == "pods":
        if request.subresource == "resize":
            return old is not None
        changes = old is None or is_terminating(old) != is_terminating(request.value)
        return not request.subresource and changes
    if request.subresource:
        return False
    return old is None or storage in ("services", "persistentvolumeclaims", "resourceclaims.resource.k8s.io")


def _hard_limits(quota: KubeObject) -> dict[str, str]:
    return (quota.get("status") or {}).get("hard") or {}


def _quota_matches(request: AdmissionRequest, value: KubeObject, quota: KubeObject) -> bool:
    bounds = any(counts_towards(request.resource, name) for name in _hard_limits(quota))
    return bounds and matches_scopes(request.resource, value, quota)


def _is_limited_by(request: AdmissionRequest, quota: KubeObject) -> bool:
    """Return whether the quota applies to the object; raises a 403 if the object lacks amounts that it requires."""
    if not _quota_matches(request, request.value, quota):
        return False
    names = [name for name in _hard_limits(quota) if counts_towards(request.resource, name)]
    quota_name = quota["metadata"]["name"]
    if request.resource.storage == "pods":
        problem = _unspecified_amounts(request.value["spec"], names)
        if problem:
            raise request.forbidden(f"failed quota: {quota_name}: must specify {problem}")
    used = quota["status"].get("used") or {}
    if any(name not in used for name in names):
        raise request.forbidden(f"status unknown for quota: {quota_name}, resources: {','.join(sorted(names))}")
    return True


def _unspecified_amounts(spec: dict[str, Any], names: list[str]) -> str:
    """Return the required amounts that containers do not specify, "" for none."""
    pod_level = spec.get("resources") or {}
    if pod_level.get("requests") or pod_level.get("limits"):
        return ""
    missing: dict[str, list[str]] = {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        sides = [dict.fromkeys(resources.get(side) or {}, Quantity(0)) for side in ("requests", "limits")]
        usage = compute_usage(*sides)
        for name in names:
            if name in REQUIRED_AMOUNTS and name not in usage:
                missing.setdefault(name, []).append(container.get("name", ""))
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _increase(used: PodResourceAmounts, before: PodResourceAmounts) -> PodResourceAmounts:
    """Return by how much the usage grows; decreases are left to the quota controller."""
    deltas = {name: amount - before[name] if name in before else amount for name, amount in used.items()}
    return {name: amount for name, amount in deltas.items() if amount.nanos > 0}


def _charge_quota(request: AdmissionRequest, quota: KubeObject, added: PodResourceAmounts) -> KubeObject:
    """Return the quota with `added` usage; raises a 403 if it exceeds a limit."""
    hard = {name: parse_quantity(text) for name, text in _hard_limits(quota).items()}
    used = {name: parse_quantity(text) for name, text in (quota["status"].get("used") or {}).items()}
    requested = {name: amount for name, amount in added.items() if name in hard}
    total = {**used, **{name: used.get(name, Quantity(0)) + amount for name, amount in requested.items()}}
    exceeded = sorted(name for name in requested if total[name] > hard[name])
    if exceeded:
        parts = [
            f"{word}: " + ",".join(f"{name}={amounts[name]}" for name in exceeded if name in amounts)
            for word, amounts in (("requested", requested), ("used", used), ("limited", hard))
        ]
        raise request.forbidden(f"exceeded quota: {quota['metadata']['name']}, {', '.join(parts)}")
    texts = {name: str(amount) for name, amount in total.items()}
    return {**quota, "status": {**quota["status"], "used": texts}}
