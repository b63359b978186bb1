"""Validation of Ingresses, NetworkPolicies, ServiceCIDRs, IPAddresses (pkg/apis/networking/validation)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.validation.addresses import (
    check_cidr,
    check_ip,
    check_strict_cidr,
    check_strict_ip,
    parse_cidr,
    parse_ip,
)
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_domain_prefixed_path, check_selector
from batkube.api.validation.names import (
    ErrorMessages,
    byte_length,
    dns_subdomain,
    label_1035_name,
    label_name,
    path_segment,
    port_name,
    port_number,
    subdomain_name,
    wildcard_subdomain,
)
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.rules import Object, ValidationRules, create_then_update, validate_metadata_update

_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_FORBIDDEN_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_FORBIDDEN_PATH_ENDS = ("/..", "/.")
_NOT_AN_ADDRESS = "must be a DNS name, not an IP address"
_PROTOCOLS = ("TCP", "UDP", "SCTP")


def _check_host(host: str, path: str, problems: Problems) -> None:
    rule = wildcard_subdomain if "*" in host else dns_subdomain
    problems.all_invalid(path, host, rule(host))


def _check_ingress_spec(spec: Mapping[str, Any], problems: Problems) -> None:
    rules, backend = spec.get("rules"), spec.get("defaultBackend")
    if not rules and backend is None:
        problems.invalid("spec", rules, "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        _check_backend(backend, "spec.defaultBackend", problems)
    for index, rule in enumerate(rules or ()):
        path, host = f"spec.rules[{index}]", rule.get("host", "")
        if host:
            if parse_ip(host) is not None:
                problems.invalid(f"{path}.host", host, _NOT_AN_ADDRESS)
            _check_host(host, f"{path}.host", problems)
        if (http := rule.get("http")) is not None:
            _check_paths(http.get("paths") or (), f"{path}.http.paths", problems)
    for index, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            _check_host(host, f"spec.tls[{index}].hosts[{number}]", problems)
        if secret := tls.get("secretName"):
            problems.all_invalid(f"spec.tls[{index}].secretName", secret, subdomain_name(secret, False))
    if (name := spec.get("ingressClassName")) is not None:
        problems.all_invalid("spec.ingressClassName", name, subdomain_name(name, False))


def _check_paths(paths: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    if not paths:
        problems.required(path)
    for index, entry in enumerate(paths):
        at, kind, text = f"{path}[{index}]", entry.get("pathType"), entry.get("path", "")
        if kind is None:
            problems.required(f"{at}.pathType", "pathType must be specified")
            continue
        if kind not in _PATH_TYPES:
            problems.not_supported(f"{at}.pathType", kind, _PATH_TYPES)
        elif (text or kind != "ImplementationSpecific") and not text.startswith("/"):
            problems.invalid(f"{at}.path", text, "must be an absolute path")
        if kind in ("Exact", "Prefix"):
            for part in _FORBIDDEN_IN_PATHS:
                if part in text:
                    problems.invalid(f"{at}.path", text, f"must not contain '{part}'")
            for end in _FORBIDDEN_PATH_ENDS:
                if text.endswith(end):
                    problems.invalid(f"{at}.path", text, f"cannot end with '{end}'")
        _check_backend(entry.get("backend", {}), f"{at}.backend", problems)


def _check_backend(backend: Mapping[str, Any], path: str, problems: Problems) -> None:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        problems.invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        _check_reference(resource, f"{path}.resource", problems)
    elif service is None:
        problems.invalid(path, "", "resource or service backend is required")
    else:
        if not (name := service.get("name")):
            problems.required(f"{path}.service.name")
        else:
            problems.all_invalid(f"{path}.service.name", name, label_1035_name(name, False))
        _check_backend_port(service.get("port") or {}, path, problems)


def _check_backend_port(port: Mapping[str, Any], path: str, problems: Problems) -> None:
    name, number = port.get("name"), port.get("number")
    if name and number:
        problems.invalid(path, "", "cannot set both port name & port number")
    elif name:
        problems.all_invalid(f"{path}.service.port.name", name, port_name(name))
    elif number:
        problems.all_invalid(f"{path}.service.port.number", number, port_number(number))
    else:
        problems.required(path, "port name or number is required")


def _check_reference(reference: Mapping[str, Any], path: str, problems: Problems) -> None:
    if (group := reference.get("apiGroup")) is not None:
        problems.all_invalid(f"{path}.apiGroup", group, dns_subdomain(group))
    for field in ("kind", "name"):
        if not (text := reference.get(field)):
            problems.required(f"{path}.{field}")
        else:
            problems.all_invalid(f"{path}.{field}", text, path_segment(text, False))


def _validate_ingress(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    _check_ingress_spec(value.get("spec", {}), problems)


def _validate_ingress_create(value: Object, problems: Problems) -> None:
    _validate_ingress(value, problems)
    noted = (value["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    name = value.get("spec", {}).get("ingressClassName")
    if noted is not None and name is not None and noted != name:
        detail = "must match `ingressClassName` when both are specified"
        problems.invalid(f"annotations.{_CLASS_ANNOTATION}", noted, detail)


def _validate_ingress_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _validate_ingress(new, problems)


def _validate_ingress_status_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    entries, before = (
        (ingress.get("status", {}).get("loadBalancer") or {}).get("ingress") or () for ingress in (new, old)
    )
    existing = [entry["ip"] for entry in before if entry.get("ip")]
    for index, entry in enumerate(entries):
        path = f"status.loadBalancer.ingress[{index}]"
        if address := entry.get("ip"):
            check_ip(address, f"{path}.ip", problems, existing)
        if host := entry.get("hostname"):
            problems.all_invalid(f"{path}.hostname", host, dns_subdomain(host))
            if parse_ip(host) is not None:
                problems.invalid(f"{path}.hostname", host, _NOT_AN_ADDRESS)


def _validate_ingress_class(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    spec = value.get("spec", {})
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    if byte_length(controller) > 250:
        problems.too_long("spec.controller", 250)
    check_domain_prefixed_path(controller, "spec.controller", problems)
    if parameters is None:
        return
    path, scope, namespace = "spec.parameters", parameters.get("scope"), parameters.get("namespace")
    _check_reference(parameters, path, problems)
    if scope is None:
        problems.required(f"{path}.scope")
    elif scope not in ("Cluster", "Namespace"):
        problems.not_supported(f"{path}.scope", scope, ("Cluster", "Namespace"))
    elif scope == "Namespace" and namespace is None:
        problems.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        problems.all_invalid(f"{path}.namespace", namespace, label_name(str(namespace), False))
    elif namespace is not None:
        problems.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


def _validate_ingress_class_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    controllers = new.get("spec", {}).get("controller", ""), old.get("spec", {}).get("controller", "")
    problems.unchanged("spec.controller", *controllers)
    _validate_ingress_class(new, problems)


def _check_policy_spec(value: Object, problems: Problems, before: Sequence[str] = ()) -> None:
    spec = value.get("spec", {})
    check_selector(spec.get("podSelector"), "spec.podSelector", problems)
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{index}]"
            for number, port in enumerate(rule.get("ports") or ()):
                _check_policy_port(port, f"{path}.ports[{number}]", problems)
            for number, peer in enumerate(rule.get(side) or ()):
                _check_peer(peer, before, f"{path}.{side}[{number}]", problems)
    kinds = spec.get("policyTypes") or []
    if len(kinds) > 2:
        problems.invalid("spec.policyTypes", kinds, "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(kinds):
        if kind not in ("Ingress", "Egress"):
            problems.not_supported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))


def _check_policy_port(port: Mapping[str, Any], path: str, problems: Problems) -> None:
    protocol, first, last = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in _PROTOCOLS:
        problems.not_supported(f"{path}.protocol", protocol, _PROTOCOLS)
    if first is None:
        if last is not None:
            problems.invalid(f"{path}.endPort", last, "may not be specified when `port` is not specified")
    elif isinstance(first, str):
        if last is not None:
            problems.invalid(f"{path}.endPort", last, "may not be specified when `port` is non-numeric")
        problems.all_invalid(f"{path}.port", first, port_name(first))
    else:
        problems.all_invalid(f"{path}.port", first, port_number(first))
        if last is not None:
            if last < first:
                problems.invalid(f"{path}.endPort", first, "must be greater than or equal to `port`")
            problems.all_invalid(f"{path}.endPort", last, port_number(last))


def _check_peer(peer: Mapping[str, Any], before: Sequence[str], path: str, problems: Problems) -> None:
    fields = [field for field in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(field) is not None]
    for field in fields:
        if field == "ipBlock":
            _check_ip_block(peer[field], before, f"{path}.{field}", problems)
        else:
            check_selector(peer[field], f"{path}.{field}", problems)
    if not fields:
        problems.required(path, "must specify a peer")
    elif len(fields) > 1 and "ipBlock" in fields:
        problems.forbidden(path, "may not specify both ipBlock and another peer")


def _check_ip_block(block: Mapping[str, Any], before: Sequence[str], path: str, problems: Problems) -> None:
    if not (text := block.get("cidr")):
        problems.required(f"{path}.cidr")
        return
    check_cidr(text, f"{path}.cidr", problems, before)
    if (whole := parse_cidr(text)) is None:
        return
    for index, hole in enumerate(block.get("except") or ()):
        at = f"{path}.except[{index}]"
        check_cidr(hole, at, problems, before)
        excluded = parse_cidr(hole)
        if excluded is not None and (excluded.network_address not in whole or whole.prefixlen >= excluded.prefixlen):
            problems.invalid(at, hole, "must be a strict subset of `cidr`")


def _validate_policy(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    _check_policy_spec(value, problems)


def _validate_policy_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _check_policy_spec(new, problems)


def _address_name(name: str, prefix: bool) -> ErrorMessages:
    problems = Problems()
    check_strict_ip(name, "", problems)
    return tuple(error.message.partition(f'"{name}": ')[2] for error in problems)


def _validate_ip_address(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], _address_name, False, problems)
    parent, path = value.get("spec", {}).get("parentRef"), "spec.parentRef"
    if parent is None:
        problems.required(path)
        return
    if group := parent.get("group"):
        problems.all_invalid(f"{path}.group", group, dns_subdomain(group))
    for field in ("resource", "name", "namespace"):
        if text := parent.get(field):
            problems.all_invalid(f"{path}.{field}", text, path_segment(text, False))
        elif field != "namespace":
            problems.required(f"{path}.{field}")


def _validate_ip_address_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    parent = new.get("spec", {}).get("parentRef")
    if parent != old.get("spec", {}).get("parentRef"):
        problems.invalid("spec.parentRef", go_struct("*networking.ParentReference", parent), IMMUTABLE)


def _check_cidrs(spec: Mapping[str, Any], problems: Problems) -> None:
    ranges, path = spec.get("cidrs") or [], "spec.cidrs"
    if not ranges:
        problems.required(path, "at least one CIDR required")
    elif len(ranges) > 2:
        go_text = go_struct("networking.ServiceCIDRSpec", spec)
        problems.invalid(path, go_text, "may only hold up to 2 values")
    else:
        for index, text in enumerate(ranges):
            check_strict_cidr(text, f"{path}[{index}]", problems)
        networks = [parse_cidr(text) for text in ranges]
        if len(networks) == 2 and None not in networks and type(networks[0]) is type(networks[1]):
            detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            problems.invalid(path, ranges, detail)


def _validate_service_cidr(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    _check_cidrs(value.get("spec", {}), problems)


def _validate_service_cidr_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    now, then = new.get("spec", {}).get("cidrs") or [], old.get("spec", {}).get("cidrs") or []
    if len(now) != len(then) and (len(then), len(now)) != (1, 2):
        problems.invalid("spec.cidrs", now or None, IMMUTABLE)
        return
    for index, (text, before) in enumerate(zip(now, then, strict=False)):
        if text != before:
            problems.invalid(f"spec.cidrs[{index}]", text, IMMUTABLE)
    if len(now) != len(then):
        _check_cidrs(new["spec"], problems)


INGRESS_CLASS_RULES = ValidationRules(_validate_ingress_class, _validate_ingress_class_update)
INGRESS_RULES = ValidationRules(_validate_ingress_create, _validate_ingress_update, _validate_ingress_status_update)
IPADDRESS_RULES = ValidationRules(
    _validate_ip_address, create_then_update(_validate_ip_address, _validate_ip_address_update)
)
NETWORK_POLICY_RULES = ValidationRules(_validate_policy, create_then_update(_validate_policy, _validate_policy_update))
SERVICE_CIDR_RULES = ValidationRules(_validate_service_cidr, _validate_service_cidr_update)
