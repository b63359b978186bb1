"""Validation of Services (Kubernetes: pkg/apis/core/validation, ValidateService and its helpers)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.pods.container_validation.probes import check_port
from batkube.api.groups.core.services import cluster_ips
from batkube.api.validation.addresses import check_cidr, check_endpoint_ip, check_ip, parse_ip
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_labels
from batkube.api.validation.names import dns_label, dns_subdomain, label_1035_name, port_number, qualified_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules, validate_metadata_update

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_TRAFFIC_POLICIES = ("Cluster", "Local")
_TRAFFIC_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_HINTS_ANNOTATION, _MODE_ANNOTATION = (
    "service.kubernetes.io/topology-aware-hints",
    "service.kubernetes.io/topology-mode",
)
_SOURCE_RANGES_ANNOTATION = "service.beta.kubernetes.io/load-balancer-source-ranges"
_LOAD_BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'"


def _check_service(service: Object, old: Object | None, problems: Problems) -> None:
    annotations, spec = service["metadata"].get("annotations") or {}, service.get("spec", {})
    before = (old or {}).get("spec", {})
    kind, ports = spec.get("type", ""), spec.get("ports") or ()
    if (
        _HINTS_ANNOTATION in annotations
        and _MODE_ANNOTATION in annotations
        and annotations[_HINTS_ANNOTATION] != annotations[_MODE_ANNOTATION]
    ):
        detail = f"must match annotations[{_HINTS_ANNOTATION}] when both are specified"
        problems.invalid(f"metadata.annotations[{_MODE_ANNOTATION}]", annotations[_MODE_ANNOTATION], detail)
    headless = cluster_ips.is_headless(spec)
    if not ports and not headless and kind != "ExternalName":
        problems.required("spec.ports")
    _check_type(spec, kind, headless, problems)
    names: set[str] = set()
    for index, port in enumerate(ports):
        _check_service_port(port, len(ports) > 1, names, f"spec.ports[{index}]", problems)
    check_labels(spec.get("selector") or {}, "spec.selector", problems)
    _check_affinity(spec, problems)
    cluster_ips.check_cluster_ips(spec, before, problems)
    for index, text in enumerate(spec.get("externalIPs") or ()):
        if check_ip(text, f"spec.externalIPs[{index}]", problems, before.get("externalIPs") or ()):
            check_endpoint_ip(text, f"spec.externalIPs[{index}]", problems)
    if not kind:
        problems.required("spec.type")
    elif kind not in _TYPES:
        problems.not_supported("spec.type", kind, _TYPES)
    _check_ports_together(ports, kind, problems)
    _check_source_ranges(service, old, problems)
    if kind != "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not None:
        problems.forbidden("spec.allocateLoadBalancerNodePorts", _LOAD_BALANCER_ONLY)
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        problems.required("allocateLoadBalancerNodePorts")
    _check_load_balancer_class(spec, problems)
    _check_traffic(spec, kind, problems)


def _check_type(spec: Mapping[str, Any], kind: str, headless: bool, problems: Problems) -> None:
    if kind in ("LoadBalancer", "NodePort") and headless:
        problems.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field) not in (None, []):
            problems.forbidden(f"spec.{field}", "may not be set for ExternalName services")
    if name := spec.get("externalName", "").removesuffix("."):
        problems.all_invalid("spec.externalName", name, dns_subdomain(name))
    else:
        problems.required("spec.externalName")


def _check_service_port(
    port: Mapping[str, Any], needs_name: bool, names: set[str], path: str, problems: Problems
) -> None:
    if name := port.get("name"):
        problems.all_invalid(f"{path}.name", name, dns_label(name))
        if name in names:
            problems.duplicate(f"{path}.name", name)
        names.add(name)
    elif needs_name:
        problems.required(f"{path}.name")
    problems.all_invalid(f"{path}.port", port.get("port", 0), port_number(port.get("port", 0)))
    protocol = port.get("protocol", "")
    if not protocol:
        problems.required(f"{path}.protocol")
    elif protocol not in _PROTOCOLS:
        problems.not_supported(f"{path}.protocol", protocol, _PROTOCOLS)
    check_port(port.get("targetPort", 0), f"{path}.targetPort", problems)
    if (application := port.get("appProtocol")) is not None:
        problems.all_invalid(f"{path}.appProtocol", application, qualified_name(application))


def _check_affinity(spec: Mapping[str, Any], problems: Problems) -> None:
    affinity, config, path = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig"), "spec.sessionAffinity"
    if not affinity:
        problems.required(path)
    elif affinity not in ("ClientIP", "None"):
        problems.not_supported(path, affinity, ("ClientIP", "None"))
    path += "Config"
    if affinity == "None" and config is not None:
        problems.forbidden(path, "must not be set when session affinity is None")
    if affinity != "ClientIP":
        return
    context = "when session affinity type is ClientIP"
    client = (config or {}).get("clientIP")
    seconds = (client or {}).get("timeoutSeconds")
    if config is None:
        problems.required(path, context)
    elif client is None:
        problems.required(f"{path}.clientIP", context)
    elif seconds is None:
        problems.required(f"{path}.clientIP.timeoutSeconds", context)
    elif not 0 < seconds <= 86400:
        detail = "must be greater than 0 and less than 86400"
        problems.invalid(f"{path}.clientIP.timeoutSeconds", seconds, detail)


def _check_ports_together(ports: Sequence[Mapping[str, Any]], kind: str, problems: Problems) -> None:
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                detail = "may not be used when `type` is 'ClusterIP'"
                problems.forbidden(f"spec.ports[{index}].nodePort", detail)
    taken: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        if number := port.get("nodePort"):
            if (port.get("protocol", ""), number) in taken:
                problems.duplicate(f"spec.ports[{index}].nodePort", number)
            taken.add((port.get("protocol", ""), number))
    taken = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("port", 0))
        if key in taken:
            go_text = go_struct("core.ServicePort", {"protocol": key[0], "port": key[1]})
            problems.duplicate(f"spec.ports[{index}]", go_text)
        taken.add(key)


def _check_source_ranges(service: Object, old: Object | None, problems: Problems) -> None:
    spec, balanced = service.get("spec", {}), service.get("spec", {}).get("type") == "LoadBalancer"
    if ranges := spec.get("loadBalancerSourceRanges"):
        path = "spec.LoadBalancerSourceRanges"
        if not balanced:
            problems.forbidden(path, _LOAD_BALANCER_ONLY)
        before = [text.strip() for text in (old or {}).get("spec", {}).get("loadBalancerSourceRanges") or ()]
        for index, text in enumerate(ranges):
            check_cidr(text.strip(), f"{path}[{index}]", problems, before)
        return
    noted = (service["metadata"].get("annotations") or {}).get(_SOURCE_RANGES_ANNOTATION)
    if noted is None:
        return
    path = f"metadata.annotations[{_SOURCE_RANGES_ANNOTATION}]"
    if not balanced:
        problems.forbidden(path, _LOAD_BALANCER_ONLY)
    earlier = ((old or {}).get("metadata", {}).get("annotations") or {}).get(_SOURCE_RANGES_ANNOTATION)
    if noted.strip() and noted != earlier:
        for text in noted.strip().split(","):
            check_cidr(text.strip(), path, problems)


def _check_load_balancer_class(spec: Mapping[str, Any], problems: Problems) -> None:
    if (name := spec.get("loadBalancerClass")) is not None:
        if spec.get("type") == "LoadBalancer":
            problems.all_invalid("spec.loadBalancerClass", name, qualified_name(name))
        else:
            problems.forbidden("spec.loadBalancerClass", _LOAD_BALANCER_ONLY)


def _needs_health_check(spec: Mapping[str, Any]) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _check_traffic(spec: Mapping[str, Any], kind: str, problems: Problems) -> None:
    policy, port, path = spec.get("externalTrafficPolicy", ""), spec.get("healthCheckNodePort", 0), "spec."
    outside = kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs"))
    if not outside:
        if policy:
            detail = "may only be set for externally-accessible services"
            problems.invalid(f"{path}externalTrafficPolicy", policy, detail)
    elif not policy:
        problems.required(f"{path}externalTrafficPolicy")
    elif policy not in _TRAFFIC_POLICIES:
        problems.not_supported(f"{path}externalTrafficPolicy", policy, _TRAFFIC_POLICIES)
    if not _needs_health_check(spec):
        if port:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            problems.invalid(f"{path}healthCheckNodePort", port, detail)
    elif not port:
        problems.required(f"{path}healthCheckNodePort")
    else:
        problems.all_invalid(f"{path}healthCheckNodePort", port, port_number(port))
    inside, distribution = spec.get("internalTrafficPolicy"), spec.get("trafficDistribution")
    if inside is None:
        if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
            problems.required(f"{path}internalTrafficPolicy")
    elif inside not in _TRAFFIC_POLICIES:
        problems.not_supported(f"{path}internalTrafficPolicy", inside, _TRAFFIC_POLICIES)
    if distribution is not None and distribution not in _TRAFFIC_DISTRIBUTIONS:
        problems.not_supported(f"{path}trafficDistribution", distribution, _TRAFFIC_DISTRIBUTIONS)


def _validate_service_create(service: Object, problems: Problems) -> None:
    check_built_in_metadata(service["metadata"], label_1035_name, True, problems)
    _check_service(service, None, problems)


def _validate_service_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    spec, before = new.get("spec", {}), old.get("spec", {})
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        cluster_ips.check_cluster_ips_unchanged(spec, before, problems)
        cluster_ips.check_families_unchanged(spec, before, problems)
    if spec.get("type") == before.get("type") == "LoadBalancer":
        name = spec.get("loadBalancerClass")
        if name != before.get("loadBalancerClass"):
            problems.invalid("spec.loadBalancerClass", name, "may not change once set")
    _check_load_balancer_class(spec, problems)
    moved = spec.get("healthCheckNodePort") != before.get("healthCheckNodePort")
    if moved and _needs_health_check(before) and _needs_health_check(spec):
        problems.forbidden("spec.healthCheckNodePort", "field is immutable")
    _check_service(new, old, problems)


def _validate_service_status_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    path, ingress = "status.loadBalancer.ingress", _ingress_entries(new)
    if new.get("spec", {}).get("type") != "LoadBalancer" and ingress:
        problems.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    before = [entry["ip"] for entry in _ingress_entries(old) if entry.get("ip")]
    for index, entry in enumerate(ingress):
        check_ingress(entry, before, f"{path}[{index}]", problems)


def _ingress_entries(service: Object) -> Sequence[Mapping[str, Any]]:
    return (service.get("status", {}).get("loadBalancer") or {}).get("ingress") or ()


def check_ingress(entry: Mapping[str, Any], before: Sequence[str], path: str, problems: Problems) -> None:
    """Check an ingress point of a load balancer."""
    address, mode, host = entry.get("ip", ""), entry.get("ipMode"), entry.get("hostname", "")
    if address:
        check_ip(address, f"{path}.ip", problems, before)
    if mode is None:
        if address:
            problems.required(f"{path}.ipMode", "must be specified when `ip` is set")
    elif not address:
        problems.forbidden(f"{path}.ipMode", "may not be specified when `ip` is not set")
    elif mode not in ("Proxy", "VIP"):
        problems.not_supported(f"{path}.ipMode", mode, ("Proxy", "VIP"))
    if host:
        problems.all_invalid(f"{path}.hostname", host, dns_subdomain(host))
        if parse_ip(host) is not None:
            problems.invalid(f"{path}.hostname", host, "must be a DNS name, not an IP address")


SERVICE_RULES = ValidationRules(_validate_service_create, _validate_service_update, _validate_service_status_update)
