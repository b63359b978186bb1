"""Validation of a pod's status, as written by kubelets and schedulers (Kubernetes: ValidatePodStatusUpdate)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.validation.addresses import check_ip, check_one_per_family
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.names import qualified_name, subdomain_name, user_or_group_id
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.rules import Object

Status = Mapping[str, Any]

_SYSTEM_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})
_NO_RESTART = "may not be transitioned to non-terminated state"
_HEALTH_STATUSES = ("Healthy", "Unhealthy", "Unknown")


def check_status(new: Object, old: Object, problems: Problems) -> None:
    """Check a pod's new status."""
    status, before, spec = new.get("status", {}), old.get("status", {}), new.get("spec", {})
    _check_conditions(status.get("conditions", ()), problems)
    if spec.get("nodeName") != old.get("spec", {}).get("nodeName"):
        problems.forbidden("status.nodeName", "may not be changed directly")
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        problems.all_invalid("status.nominatedNodeName", nominated, subdomain_name(nominated, False))
    if (generation := status.get("observedGeneration", 0)) < 0:
        problems.invalid("status.observedGeneration", generation, "must be a non-negative integer")
    if (quality := status.get("qosClass", "")) != before.get("qosClass", ""):
        problems.invalid("status.qosClass", quality, IMMUTABLE)
    _check_transitions(status, before, old.get("spec", {}), problems)
    if claims := status.get("resourceClaimStatuses"):
        _check_claims(claims, spec.get("resourceClaims", ()), problems)
    for field, single in (("podIPs", ""), ("hostIPs", "hostIP")):
        if addresses := status.get(field):
            _check_addresses(addresses, before.get(field) or (), field, status.get(single), problems)
    if any("user" in container for container in status.get("containerStatuses", ())):
        _check_users(status, spec, problems)
    _check_allocations(status, spec, problems)


def _check_conditions(conditions: Sequence[Status], problems: Problems) -> None:
    for index, condition in enumerate(conditions):
        if (generation := condition.get("observedGeneration", 0)) < 0:
            path = f"status.conditions[{index}].observedGeneration"
            problems.invalid(path, generation, "must be a non-negative integer")
        kind = condition.get("type", "")
        if kind not in _SYSTEM_CONDITIONS and (wrong := qualified_name(kind)):
            problems.all_invalid(f"status.conditions[{index}].Type", kind, wrong)


def _check_transitions(status: Status, before: Status, spec: Mapping[str, Any], problems: Problems) -> None:
    """Check that no terminated container is running again, unless its restart policy allows it."""
    policy = spec.get("restartPolicy", "")
    sidecars = {c.get("name") for c in spec.get("initContainers", ()) if c.get("restartPolicy") == "Always"}
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        restarts = "" if field == "ephemeralContainerStatuses" else policy
        if restarts == "Always":
            continue
        now = {container.get("name", ""): container.get("state", {}) for container in status.get(field) or ()}
        for index, container in enumerate(before.get(field) or ()):
            name, ended = container.get("name", ""), container.get("state", {}).get("terminated")
            if ended is None or (ended.get("exitCode", 0) and restarts == "OnFailure"):
                continue
            if field == "initContainerStatuses" and name in sidecars:
                continue
            if name in now and "terminated" not in now[name]:
                problems.forbidden(f"status.{field}[{index}].state", _NO_RESTART)


def _check_claims(statuses: Sequence[Status], claims: Sequence[Mapping[str, Any]], problems: Problems) -> None:
    claim_names, seen = {claim.get("name", "") for claim in claims}, set()
    for index, status in enumerate(statuses):
        path, name = f"status.resourceClaimStatuses[{index}].name", status.get("name", "")
        if name not in claim_names:
            problems.invalid(path, name, "must match the name of an entry in `spec.resourceClaims`")
        if name in seen:
            problems.duplicate(path, name)
        seen.add(name)
        if (claim := status.get("resourceClaimName")) is not None:
            problems.all_invalid(path, claim, subdomain_name(claim, False))


def _check_addresses(
    addresses: Sequence[Status], before: Sequence[Status], field: str, single: str | None, problems: Problems
) -> None:
    texts, earlier = [item.get("ip", "") for item in addresses], [item.get("ip", "") for item in before]
    path = f"status.{field}"
    if field == "hostIPs" and texts[0] != (single or ""):
        problems.invalid(f"{path}[0].ip", texts[0], "must be equal to `hostIP`")
    for index, text in enumerate(texts):
        check_ip(text, f"{path}[{index}]", problems, earlier)
    go_text = go_struct(f"[]core.{field[0].upper()}{field[1:-1]}", addresses) if len(texts) > 1 else ""
    check_one_per_family(texts, go_text, path, "IP", problems)


def _check_users(status: Status, spec: Mapping[str, Any], problems: Problems) -> None:
    system = spec.get("os", {}).get("name", "linux")
    for field in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for index, container in enumerate(status.get(field) or ()):
            user = container.get("user", {}).get("linux")
            path = f"status.{field}[{index}].user.linux"
            if user is None:
                continue
            if system == "windows":
                problems.forbidden(path, "cannot be set for a windows pod")
                continue
            for id_field in ("uid", "gid"):
                problems.all_invalid(
                    f"{path}.{id_field}", user.get(id_field, 0), user_or_group_id(user.get(id_field, 0))
                )
            for number, group in enumerate(user.get("supplementalGroups", ())):
                problems.all_invalid(f"{path}.supplementalGroups[{number}]", group, user_or_group_id(group))


def _check_allocations(status: Status, spec: Mapping[str, Any], problems: Problems) -> None:
    """Check the reported health of allocated devices."""
    for field, of_spec in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        for index, container in enumerate(status.get(field) or ()):
            if allocated := container.get("allocatedResourcesStatus"):
                matches = [c for c in spec.get(of_spec) or () if c.get("name") == container.get("name")]
                path = f"status.{field}[{index}].allocatedResourcesStatus"
                _check_devices(allocated, matches[0] if matches else None, path, problems)
    for index, container in enumerate(status.get("ephemeralContainerStatuses", ())):
        if container.get("allocatedResourcesStatus"):
            path = f"status.ephemeralContainerStatuses[{index}].allocatedResourcesStatus"
            problems.forbidden(path, "must not be specified in container status")


def _check_devices(
    allocated: Sequence[Status], container: Mapping[str, Any] | None, path: str, problems: Problems
) -> None:
    resources = (container or {}).get("resources", {})
    claims = {
        f"claim:{c.get('name', '')}" + (f"/{c['request']}" if c.get("request") else "")
        for c in resources.get("claims", ())
    }
    for index, item in enumerate(allocated):
        name = item.get("name", "")
        if container is not None:
            if name.startswith("claim:"):
                is_known = name in claims
                detail = (
                    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
                    "'claim:<claimName>' if request is empty"
                )
            else:
                is_known = name in resources.get("requests", {})
                detail = "must match one of the container's resource requests"
            if not is_known:
                problems.invalid(f"{path}[{index}].name", name, detail)
        seen: set[str] = set()
        for number, device in enumerate(item.get("resources", ())):
            at, health = f"{path}[{index}].resources[{number}]", device.get("health", "")
            if health not in _HEALTH_STATUSES:
                problems.not_supported(f"{at}.health", health, _HEALTH_STATUSES)
            if (identity := device.get("resourceID", "")) in seen:
                problems.duplicate(f"{at}.resourceID", identity)
            seen.add(identity)
