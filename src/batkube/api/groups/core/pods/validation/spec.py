"""Validation of a pod spec, in a pod or a template (Kubernetes: pkg/apis/core/validation, ValidatePodSpec)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.pods.container_validation.containers import (
    PodContext,
    check_containers,
    check_ephemeral_containers,
    check_init_containers,
)
from batkube.api.groups.core.pods.container_validation.security_contexts import (
    check_annotations_match_fields,
    check_pod_security,
    check_security_annotations,
    containers_with_paths,
)
from batkube.api.groups.core.pods.container_validation.volumes import check_volumes
from batkube.api.groups.core.pods.validation import operating_systems, scheduling
from batkube.api.groups.core.pods.validation.pod_resources import check_pod_resources
from batkube.api.validation.addresses import check_ip
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_annotations, check_labels
from batkube.api.validation.names import (
    byte_length,
    dns_label,
    dns_subdomain,
    dns_subdomain_with_underscores,
    inclusive_range_message,
    qualified_name,
    subdomain_name,
)
from batkube.api.validation.problems import Problems
from batkube.api.validation.quantities import check_container_resource, check_resource_requirements

MIRROR = "kubernetes.io/config.mirror"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_INT32_MAX = 2**31 - 1


def check_template(template: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Check a pod template (Kubernetes: ValidatePodTemplateSpec)."""
    meta, spec = template.get("metadata", {}), template.get("spec", {})
    annotations = meta.get("annotations", {})
    check_labels(meta.get("labels", {}), f"{path}.labels", problems)
    if annotations:
        check_annotations(annotations, f"{path}.annotations", problems)
        check_pod_annotations(annotations, spec, f"{path}.annotations", problems)
    check_spec(spec, None, f"{path}.spec", problems)
    check_annotations_match_fields(annotations, spec, f"{path}.spec", problems)
    if spec.get("ephemeralContainers"):
        problems.forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def check_pod_annotations(
    annotations: Mapping[str, str], spec: Mapping[str, Any], path: str, problems: Problems
) -> None:
    """Check the annotations that Kubernetes itself uses."""
    if MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        problems.invalid(f"{path}[{MIRROR}]", annotations[MIRROR], detail)
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        problems.invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer")
    check_security_annotations(annotations, spec, path, problems)


def _is_int32(text: str) -> bool:
    """Return whether a text is an int32 in Kubernetes' format: no plus sign, no leading zeros."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (digits.startswith("0") and text != "0"):
        return False
    return len(digits) <= 10 and -(2**31) <= int(text) < 2**31


def check_spec(spec: Mapping[str, Any], pod: Mapping[str, Any] | None, path: str, problems: Problems) -> None:
    """Check a pod's spec; `pod` is the pod's metadata, or None in a template."""
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        problems.required(f"{path}.terminationGracePeriodSeconds")
    volumes = check_volumes(spec.get("volumes", ()), (pod or {}).get("name", ""), f"{path}.volumes", problems)
    claims = spec.get("resourceClaims", ())
    if claims:
        _check_resource_claims(claims, pod, f"{path}.resourceClaims", problems)
    around = PodContext(
        volumes,
        frozenset(claim["name"] for claim in claims if claim.get("name")),
        grace,
        spec.get("restartPolicy", ""),
        spec.get("hostUsers", True),
    )
    containers, inits = spec.get("containers") or (), spec.get("initContainers", ())
    check_containers(containers, around, f"{path}.containers", problems)
    check_init_containers(inits, containers, around, f"{path}.initContainers", problems)
    ephemeral = spec.get("ephemeralContainers", ())
    check_ephemeral_containers(ephemeral, [*containers, *inits], around, f"{path}.ephemeralContainers", problems)
    if (resources := spec.get("resources")) is not None:
        check_pod_resources(spec, resources, around.claims, f"{path}.resources", problems)
    if spec.get("hostNetwork"):
        _check_host_network(containers, pod is not None, f"{path}.containers", problems)
    _check_choice(spec.get("restartPolicy", ""), _RESTART_POLICIES, f"{path}.restartPolicy", problems)
    _check_choice(spec.get("dnsPolicy", ""), _DNS_POLICIES, f"{path}.dnsPolicy", problems)
    if selector := spec.get("nodeSelector"):
        check_labels(selector, f"{path}.nodeSelector", problems)
    check_pod_security(spec, f"{path}.securityContext", problems)
    _check_placement(spec, path, problems)
    operating_systems.check_host_process(spec, path, problems)
    if spec.get("hostUsers") is False:
        _check_user_namespace(spec, path, problems)
    _check_names_and_numbers(spec, path, problems)
    if (system := spec.get("os")) is not None:
        operating_systems.check_os(spec, system, path, problems)


def _check_choice(value: str, allowed: Sequence[str], path: str, problems: Problems) -> None:
    if value not in allowed:
        if not value:
            problems.required(path)
        else:
            problems.not_supported(path, value, allowed)


def check_preemption_policy(policy: str, path: str, problems: Problems) -> None:
    """Check the preemption policy."""
    _check_choice(policy, _PREEMPTION_POLICIES, path, problems)


def _check_placement(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    if affinity := spec.get("affinity"):
        scheduling.check_affinity(affinity, f"{path}.affinity", problems)
    if "dnsConfig" in spec or spec.get("dnsPolicy") == "None":
        _check_dns(spec.get("dnsConfig"), spec.get("dnsPolicy", ""), f"{path}.dnsConfig", problems)
    for index, gate in enumerate(spec.get("readinessGates", ())):
        kind = gate.get("conditionType", "")
        problems.all_invalid(f"{path}.readinessGates[{index}].conditionType", kind, qualified_name(kind))
    if gates := spec.get("schedulingGates"):
        scheduling.check_scheduling_gates(gates, f"{path}.schedulingGates", problems)
    if constraints := spec.get("topologySpreadConstraints"):
        scheduling.check_topology_spread(constraints, f"{path}.topologySpreadConstraints", problems)


def _check_names_and_numbers(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    for field in ("serviceAccountName", "nodeName"):
        if name := spec.get(field):
            problems.all_invalid(f"{path}.{field}", name, subdomain_name(name, False))
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _INT32_MAX:
        problems.invalid(f"{path}.activeDeadlineSeconds", seconds, inclusive_range_message(1, _INT32_MAX))
    for field in ("hostname", "subdomain"):
        if name := spec.get(field):
            problems.all_invalid(f"{path}.{field}", name, dns_label(name))
    if tolerations := spec.get("tolerations"):
        scheduling.check_tolerations(tolerations, f"{path}.tolerations", problems)
    for index, alias in enumerate(spec.get("hostAliases", ())):
        at = f"{path}.hostAliases[{index}]"
        check_ip(alias.get("ip", ""), f"{at}.ip", problems)
        for number, name in enumerate(alias.get("hostnames", ())):
            problems.all_invalid(f"{at}.hostnames[{number}]", name, dns_subdomain(name))
    for field in ("priorityClassName", "runtimeClassName"):
        name = spec.get(field)
        if name or (name == "" and field == "runtimeClassName"):
            problems.all_invalid(f"{path}.{field}", name, subdomain_name(name, False))
    if (policy := spec.get("preemptionPolicy")) is not None:
        check_preemption_policy(policy, f"{path}.preemptionPolicy", problems)
    if (overhead := spec.get("overhead")) is not None:
        check_resource_requirements(
            {"limits": overhead}, check_container_resource, frozenset(), f"{path}.overhead", problems
        )


def _check_resource_claims(
    claims: Sequence[Mapping[str, Any]], pod: Mapping[str, Any] | None, path: str, problems: Problems
) -> None:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        if pod is not None and MIRROR in pod.get("annotations", {}):
            problems.forbidden("", "static pods do not support resource claims")
            continue
        at, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            problems.required(f"{at}.name")
        elif name in seen:
            problems.duplicate(f"{at}.name", name)
        else:
            problems.all_invalid(f"{at}.name", name, dns_label(name))
            seen.add(name)
        named = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
        if len(named) == 2:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            problems.invalid(at, go_struct("core.PodResourceClaim", claim), detail)
        elif not named:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            problems.invalid(at, go_struct("core.PodResourceClaim", claim), detail)
        for field in named:
            problems.all_invalid(f"{at}.{field}", claim[field], subdomain_name(claim[field], False))


def _check_host_network(containers: Sequence[Mapping[str, Any]], is_pod: bool, path: str, problems: Problems) -> None:
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports", ())):
            host_port = port.get("hostPort", 0)
            if (is_pod or host_port) and host_port != port.get("containerPort", 0):
                detail = "must match `containerPort` when `hostNetwork` is true"
                problems.invalid(f"{path}[{index}].ports[{number}].hostPort", host_port, detail)


def _check_user_namespace(spec: Mapping[str, Any], path: str, problems: Problems) -> None:
    for field, name in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            problems.forbidden(f"{path}.{name}", "when `hostUsers` is false")
    for container, at in containers_with_paths(spec, path):
        if container.get("volumeDevices"):
            problems.forbidden(f"{at}.volumeDevices", "when `hostUsers` is false")


def _check_dns(config: Mapping[str, Any] | None, policy: str, path: str, problems: Problems) -> None:
    servers = (config or {}).get("nameservers", [])
    if policy == "None" and config is None:
        problems.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    if policy == "None" and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        problems.required(f"{path}.nameservers", detail)
        return
    searches = (config or {}).get("searches", [])
    if len(servers) > 3:
        problems.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        check_ip(server, f"{path}.nameservers[{index}]", problems)
    if len(searches) > 32:
        problems.invalid(f"{path}.searches", searches, "must not have more than 32 search paths")
    if byte_length(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        problems.invalid(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            bare = search.removesuffix(".")
            problems.all_invalid(f"{path}.searches[{index}]", bare, dns_subdomain_with_underscores(bare))
    for index, option in enumerate((config or {}).get("options", ())):
        if not option.get("name"):
            problems.required(f"{path}.options[{index}]", "must not be empty")
