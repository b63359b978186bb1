"""ResourceQuota: what the objects of a namespace may use together.

A quota's status says what is used; it is charged with a new object before that object is there, and only a controller
gives back what is used no more. A quota whose status names no amounts yet bounds nothing. Kubernetes:
apiserver/pkg/admission/plugin/resourcequota/controller.go.
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
"""Quotas as they will be, to be written before the object that they are charged with."""

_UNCOUNTED_RESOURCES = ("events",)


def charge_quotas(attempt: AdmissionRequest) -> QuotaCharges:
    """Charge the quotas of the namespace with what is about to be written, or refuse it."""
    if not attempt.namespace or attempt.resource.storage in _UNCOUNTED_RESOURCES:
        return []
    quotas = list(attempt.objects_in_namespace("resourcequotas"))
    if not quotas or not _can_change_usage(attempt):
        return []
    charged = [(key, quota) for key, quota in quotas if _is_limited_by(attempt, quota)]
    used = usage_of(attempt.resource, attempt.value)
    before = usage_of(attempt.resource, attempt.old) if attempt.old is not None else {}
    charges: QuotaCharges = []
    for key, quota in charged:
        counted = before if attempt.old is not None and _quota_matches(attempt, attempt.old, quota) else {}
        added = _increase(used, counted)
        if added:
            charges.append((key, _charge_quota(attempt, quota, added)))
    return charges


def _can_change_usage(attempt: AdmissionRequest) -> bool:
    """Tell whether this kind of write can change what is used (the evaluators' Handles)."""
    storage, old = attempt.resource.storage, attempt.old
    if storage == "pods":
        if attempt.subresource == "resize":
            return old is not None
        changes = old is None or is_terminating(old) != is_terminating(attempt.value)
        return not attempt.subresource and changes
    if attempt.subresource:
        return False
    return old is None or storage in ("services", "persistentvolumeclaims", "resourceclaims.resource.k8s.io")


def _hard_limits(quota: KubeObject) -> dict[str, str]:
    return (quota.get("status") or {}).get("hard") or {}


def _quota_matches(attempt: AdmissionRequest, value: KubeObject, quota: KubeObject) -> bool:
    bounds = any(counts_towards(attempt.resource, name) for name in _hard_limits(quota))
    return bounds and matches_scopes(attempt.resource, value, quota)


def _is_limited_by(attempt: AdmissionRequest, quota: KubeObject) -> bool:
    """Tell whether the quota is for the object; refuse one that does not say what it needs."""
    if not _quota_matches(attempt, attempt.value, quota):
        return False
    names = [name for name in _hard_limits(quota) if counts_towards(attempt.resource, name)]
    quota_name = quota["metadata"]["name"]
    if attempt.resource.storage == "pods":
        problem = _unspecified_amounts(attempt.value["spec"], names)
        if problem:
            raise attempt.forbidden(f"failed quota: {quota_name}: must specify {problem}")
    used = quota["status"].get("used") or {}
    if any(name not in used for name in names):
        raise attempt.forbidden(f"status unknown for quota: {quota_name}, resources: {','.join(sorted(names))}")
    return True


def _unspecified_amounts(spec: dict[str, Any], names: list[str]) -> str:
    """Return which amounts which containers must specify, "" if none."""
    whole = spec.get("resources") or {}
    if whole.get("requests") or whole.get("limits"):
        return ""
    lacking: dict[str, list[str]] = {}
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        resources = container.get("resources") or {}
        sides = [dict.fromkeys(resources.get(side) or {}, Quantity(0)) for side in ("requests", "limits")]
        usage = compute_usage(*sides)
        for name in names:
            if name in REQUIRED_AMOUNTS and name not in usage:
                lacking.setdefault(name, []).append(container.get("name", ""))
    return "; ".join(f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking))


def _increase(used: PodResourceAmounts, counted: PodResourceAmounts) -> PodResourceAmounts:
    """Return what is used beyond what is counted already."""
    rest = {name: amount - counted[name] if name in counted else amount for name, amount in used.items()}
    return {name: amount for name, amount in rest.items() if amount.nanos > 0}


def _charge_quota(attempt: AdmissionRequest, quota: KubeObject, added: PodResourceAmounts) -> KubeObject:
    """Return the quota charged with `added`; refuse what goes beyond it."""
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
        raise attempt.forbidden(f"exceeded quota: {quota['metadata']['name']}, {', '.join(parts)}")
    texts = {name: str(amount) for name, amount in total.items()}
    return {**quota, "status": {**quota["status"], "used": texts}}
