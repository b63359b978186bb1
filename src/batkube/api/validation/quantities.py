"""Validation of resource names and quantities: of containers, quotas and nodes.

Kubernetes: pkg/apis/core/helper/helpers.go and pkg/apis/core/validation (validateResourceRequirements and its helpers).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from batkube.api.validation.names import ErrorMessages, dns_label, qualified_name
from batkube.api.validation.problems import NOT_NEGATIVE, POSITIVE, Problems
from batkube.kernel.memo import memoized
from batkube.kernel.quantities import Quantity, parse_quantity

HUGE_PAGES = "hugepages-"
_REQUESTS_PREFIX = "requests."
_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED_RESOURCES = frozenset(
    [
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    ]
)
QUOTA_RESOURCES = _COUNTED_RESOURCES | frozenset(
    [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
    ]
)
_STANDARD_RESOURCES = QUOTA_RESOURCES | {"storage"}

NameCheck = Callable[[str, str, Problems], None]
"""Checks the name of a resource at a path."""

quantity = memoized(4096)(parse_quantity)


def is_huge_pages(name: str) -> bool:
    """Return whether a resource is huge pages of some size."""
    return name.startswith(HUGE_PAGES)


def is_standard_quota_resource(name: str) -> bool:
    """Return whether a quota resource is a standard one (Kubernetes: helper.IsStandardQuotaResourceName)."""
    return name in QUOTA_RESOURCES or name.startswith((HUGE_PAGES, _REQUESTS_PREFIX + HUGE_PAGES))


def is_native_resource(name: str) -> bool:
    """Return whether a resource is a native one of Kubernetes."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    """Return whether it is an extended resource, which is an integer and cannot be overcommitted."""
    if is_native_resource(name) or name.startswith(_REQUESTS_PREFIX):
        return False
    return not qualified_name(_REQUESTS_PREFIX + name)


def is_overcommit_allowed(name: str) -> bool:
    """Return whether limits of the resource may exceed requests."""
    return is_native_resource(name) and not is_huge_pages(name)


@memoized(1024)
def resource_name(name: str) -> ErrorMessages:
    """Check a resource name: one of Kubernetes' own, or a qualified name."""
    wrong = qualified_name(name)
    if wrong or "/" in name or name in _STANDARD_RESOURCES or is_standard_quota_resource(name):
        return wrong
    return ("must be a standard resource type or fully qualified",)


@memoized(1024)
def container_resource(name: str) -> ErrorMessages:
    """Check the name of a resource that a container may request."""
    wrong = resource_name(name)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_huge_pages(name):
            return (*wrong, "must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        return (*wrong, "doesn't follow extended resource name standard")
    return wrong


@memoized(1024)
def quota_resource(name: str) -> ErrorMessages:
    """Check the name of a resource that a quota may limit."""
    wrong = resource_name(name)
    if "/" not in name and not is_standard_quota_resource(name):
        return (*wrong, "must be a standard resource for quota")
    return wrong


@memoized(4096)
def resource_quantity(name: str, text: str | int) -> ErrorMessages:
    """Check a quantity of a resource: non-negative, and an integer if the resource requires one."""
    amount = quantity(text)
    wrong: ErrorMessages = () if amount.nanos >= 0 else (NOT_NEGATIVE,)
    if (name in _COUNTED_RESOURCES or is_extended_resource(name)) and amount.milli_value % 1000:
        return (*wrong, "must be an integer")
    return wrong


def check_resource_quantity(name: str, text: str | int, path: str, problems: Problems) -> None:
    """Check a quantity of a resource, and report its errors."""
    if wrong := resource_quantity(name, text):
        problems.all_invalid(path, str(text), wrong)


def check_positive_quantity(text: str | int, path: str, problems: Problems) -> bool:
    """Check that a quantity is positive; return whether it is."""
    if quantity(text).nanos > 0:
        return True
    problems.invalid(path, str(text), POSITIVE)
    return False


def check_whole_quantity(text: str | int, path: str, problems: Problems) -> None:
    """Check that a quantity is not negative when it is rounded up to an integer."""
    if (value := quantity(text).value) < 0:
        problems.invalid(path, value, "must be a valid resource quantity")


def check_container_resource(name: str, path: str, problems: Problems) -> None:
    """Check the name of a resource in a container's requirements."""
    if wrong := container_resource(name):
        problems.all_invalid(path, name, wrong)


def check_pod_resource(name: str, path: str, problems: Problems) -> None:
    """Check the name of a resource in pod-level requirements."""
    if wrong := resource_name(name):
        problems.all_invalid(path, name, wrong)
    elif name not in ("cpu", "memory") and not is_huge_pages(name):
        problems.not_supported(path, name, ("cpu", HUGE_PAGES, "memory"))


def check_resource_requirements(
    requirements: Mapping[str, Any], check_name: NameCheck, claims: Container[str], path: str, problems: Problems
) -> None:
    """Check the resource requirements of a container (Kubernetes: validateResourceRequirements)."""
    limits, requests = requirements.get("limits", {}), requirements.get("requests", {})
    has_compute = has_pages = False
    for name, text in limits.items():
        _check_resource(name, text, check_name, f"{path}.limits", problems)
        has_pages |= _check_huge_pages(name, text, f"{path}.limits", problems)
        has_compute |= name in ("cpu", "memory")
    for name, text in requests.items():
        _check_resource(name, text, check_name, f"{path}.requests", problems)
        _check_below_limit(name, text, limits, path, problems)
        has_pages |= _check_huge_pages(name, text, f"{path}.requests", problems)
        has_compute |= name in ("cpu", "memory")
    if has_pages and not has_compute:
        problems.forbidden(path, "HugePages require cpu or memory")
    if references := requirements.get("claims"):
        _check_claims(references, claims, f"{path}.claims", problems)


def _check_resource(name: str, text: str, check_name: NameCheck, path: str, problems: Problems) -> None:
    check_name(name, f"{path}[{name}]", problems)
    if wrong := resource_quantity(name, text):
        problems.all_invalid(f"{path}[{name}]", str(text), wrong)


def _check_huge_pages(name: str, text: str, path: str, problems: Problems) -> bool:
    if not is_huge_pages(name):
        return False
    if not _is_multiple(quantity(text), name.removeprefix(HUGE_PAGES)):
        problems.invalid(f"{path}[{name}]", text, f"{text} is not positive integer multiple of {name}")
    return True


def _is_multiple(amount: Quantity, page: str) -> bool:
    try:
        size = quantity(page)
    except ValueError:
        return False
    return size.nanos > 0 and size.milli_value % 1000 == 0 and amount.value % size.value == 0


def _check_below_limit(name: str, text: str, limits: Mapping[str, Any], path: str, problems: Problems) -> None:
    limit = limits.get(name)
    if limit is None:
        if not is_overcommit_allowed(name):
            problems.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    if text == limit:
        return
    request, allowed = quantity(text), quantity(limit)
    if request != allowed and not is_overcommit_allowed(name):
        problems.invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}")
    elif request > allowed:
        problems.invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}")


def _check_claims(
    references: Sequence[Mapping[str, Any]], claims: Container[str], path: str, problems: Problems
) -> None:
    """Check that a container's claims refer to its pod's claims, and that there are no duplicates."""
    claim_names = sorted(claims) if isinstance(claims, frozenset) else []
    names: dict[str, None] = {}
    for index, claim in enumerate(references):
        at, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            problems.required(at)
            continue
        if name in names:
            problems.duplicate(at, name)
        else:
            key = f"{name}/{request}" if request else name
            problems.all_invalid(f"{at}.request", request, dns_label(request) if request else ())
            if key in names:
                problems.duplicate(at, key)
            elif not request:
                for other in names:
                    if other.partition("/")[0] == name and "/" in other:
                        problems.duplicate(at, name)
            names[key] = None
        if name not in claims:
            suffix = f": {', '.join(claim_names)}" if claim_names else " which is empty"
            problems.not_found(at, name, f"must be one of the names in pod.spec.resourceClaims{suffix}")
