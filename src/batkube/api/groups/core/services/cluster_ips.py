"""Validation of a Service's cluster IPs and IP families.

Kubernetes: pkg/apis/core/validation (ValidateServiceClusterIPsRelatedFields, validateUpgradeDowngradeClusterIPs …).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.validation.addresses import check_ip, is_dual_stack, is_ipv6
from batkube.api.validation.problems import Problems, mark_repeats

Spec = Mapping[str, Any]

_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_IMMUTABLE_ONCE_SET = "may not change once set"


def is_headless(spec: Spec) -> bool:
    """Return whether a service is headless."""
    return spec.get("clusterIPs") == ["None"]


def check_cluster_ips(spec: Spec, before: Spec, problems: Problems) -> None:
    """Check that cluster IPs and families are consistent."""
    if spec.get("type") == "ExternalName":
        return
    first, texts, families = spec.get("clusterIP", ""), spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    path = "spec.clusterIPs"
    if first and not texts:
        problems.required(path)
    elif first and texts[0] != first:
        problems.invalid(path, texts, "first value must match `clusterIP`")
    elif not first and texts:
        problems.invalid(path, texts, "must be empty when `clusterIP` is not specified")
    for index, (family, is_repeated) in enumerate(zip(families, mark_repeats(families), strict=True)):
        if family not in _FAMILIES:
            problems.not_supported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        if is_repeated:
            problems.duplicate(f"spec.ipFamilies[{index}]", family)
    if (policy := spec.get("ipFamilyPolicy")) is not None and policy not in _FAMILY_POLICIES:
        problems.not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES)
    good = True
    for index, text in enumerate(texts):
        if index == 0 and text == "None":
            if len(texts) > 1:
                good = False
                problems.invalid(path, texts, "'None' must be the first and only value")
            continue
        good &= check_ip(text, f"{path}[{index}]", problems, before.get("clusterIPs") or ())
    if len(texts) > 2:
        problems.invalid(path, texts, "may only hold up to 2 values")
    if not good:
        return
    if len(texts) > 1 and not is_dual_stack(texts):
        problems.invalid(path, texts, "may specify no more than one IP for each IP family")
    if not is_headless(spec):
        for index, (text, family) in enumerate(zip(texts, families, strict=False)):
            if family in _FAMILIES and (family == "IPv6") != is_ipv6(text):
                detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                problems.invalid(f"{path}[{index}]", text, detail)


def check_cluster_ips_unchanged(spec: Spec, before: Spec, problems: Problems) -> None:
    """Check that cluster IPs are unchanged, except for adding or removing the secondary one."""
    if is_headless(spec) and is_headless(before):
        return
    now, then = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    if len(now) == len(then):
        for index, (text, earlier) in enumerate(zip(now, then, strict=True)):
            if text != earlier:
                problems.invalid(f"spec.clusterIPs[{index}]", now, _IMMUTABLE_ONCE_SET)
    elif not now:
        problems.invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset")
    else:
        if then and now[0] != then[0]:
            problems.invalid("spec.clusterIPs[0]", now, _IMMUTABLE_ONCE_SET)
        if len(now) == 1 < len(then):
            _check_single_stack(spec, "clusterIP", problems)


def check_families_unchanged(spec: Spec, before: Spec, problems: Problems) -> None:
    """Check that families are unchanged, except for adding or removing the secondary one."""
    if is_headless(spec) or is_headless(before):
        return
    now, then = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    addresses, path = spec.get("clusterIPs"), "spec.ipFamilies[0]"
    if len(now) == len(then):
        for family, earlier in zip(now, then, strict=True):
            if family != earlier:
                problems.invalid(path, now, _IMMUTABLE_ONCE_SET)
    else:
        if len(now) < len(then) and not addresses:
            problems.invalid(path, now or None, "primary ipFamily can not be unset")
        # Kubernetes reports the cluster IPs as the value.
        if now and then and now[0] != then[0]:
            problems.invalid(path, addresses, _IMMUTABLE_ONCE_SET)
        if len(now) == 1 < len(then):
            _check_single_stack(spec, "ipFamily", problems)


def _check_single_stack(spec: Spec, noun: str, problems: Problems) -> None:
    if (policy := spec.get("ipFamilyPolicy")) != "SingleStack":
        detail = f"must be set to 'SingleStack' when releasing the secondary {noun}"
        problems.invalid("spec.ipFamilyPolicy", policy, detail)
