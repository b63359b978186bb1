"""Warnings about services, endpoints, policies, ingresses and nodes.

Kubernetes: pkg/api/service/warnings.go and the strategies of the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.address_warnings import of_address, of_addresses, of_range, of_ranges

_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
_INGRESS_CLASS = "kubernetes.io/ingress.class"
#: Controllers that are known to write addresses properly.
_ENDPOINTS_CONTROLLER = {"endpoints.kubernetes.io/managed-by": ("endpoint-controller",)}
_SLICE_CONTROLLERS = {
    "endpointslice.kubernetes.io/managed-by": (
        "endpointslice-controller.k8s.io",
        "endpointslicemirroring-controller.k8s.io",
    )
}


def of_service(service: Mapping[str, Any]) -> list[str]:
    """Services: fields that do nothing together with others, and addresses."""
    spec, warnings = service["spec"], []
    kind, external = spec.get("type"), spec.get("externalIPs") or ()
    if _TOPOLOGY_HINTS in (service["metadata"].get("annotations") or {}):
        warnings.append(f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    if spec.get("clusterIP") not in (None, "", "None"):
        warnings += of_addresses("spec.clusterIPs", spec.get("clusterIPs") or ())
    if kind == "ClusterIP" and spec.get("clusterIP") == "None":
        ignored = {
            "loadBalancerIP": spec.get("loadBalancerIP"),
            "externalIPs": external,
            "SessionAffinity": spec.get("sessionAffinity") != "None",
        }
        warnings += [f"spec.{field} is ignored for headless services" for field, given in ignored.items() if given]
    warnings += of_addresses("spec.externalIPs", external)
    if spec.get("loadBalancerIP"):
        warnings += of_address("spec.loadBalancerIP", spec["loadBalancerIP"])
    warnings += of_ranges("spec.loadBalancerSourceRanges", spec.get("loadBalancerSourceRanges") or ())
    if kind == "ExternalName" and external:
        warnings.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if kind != "ExternalName" and spec.get("externalName"):
        warnings.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    return warnings


def of_load_balancer(value: Mapping[str, Any]) -> list[str]:
    """The addresses of a load balancer, in the status of a service or an ingress."""
    found = ((value.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return of_addresses("status.loadBalancer.ingress", [each.get("ip", "") for each in found])


def _is_managed(value: Mapping[str, Any], managers: Mapping[str, tuple[str, ...]]) -> bool:
    labels = value["metadata"].get("labels") or {}
    return any(labels.get(label) in names for label, names in managers.items())


def of_endpoints(endpoints: Mapping[str, Any]) -> list[str]:
    """Addresses of endpoints."""
    if _is_managed(endpoints, _ENDPOINTS_CONTROLLER):
        return []
    return [
        warning
        for index, subset in enumerate(endpoints.get("subsets") or ())
        for field in ("addresses", "notReadyAddresses")
        for number, address in enumerate(subset.get(field) or ())
        for warning in of_address(f"subsets[{index}].{field}[{number}].ip", address.get("ip", ""))
    ]


def of_endpoint_slice(endpoint_slice: Mapping[str, Any]) -> list[str]:
    """A new slice of endpoints: names instead of addresses are out of fashion."""
    warnings = []
    if endpoint_slice.get("addressType") == "FQDN":
        warnings.append("spec.addressType: FQDN endpoints are deprecated")
    return warnings + of_slice_addresses(endpoint_slice)


def of_slice_addresses(endpoint_slice: Mapping[str, Any]) -> list[str]:
    """Addresses of a slice of endpoints."""
    if _is_managed(endpoint_slice, _SLICE_CONTROLLERS):
        return []
    return [
        warning
        for index, endpoint in enumerate(endpoint_slice.get("endpoints") or ())
        for warning in of_addresses(f"endpoints[{index}].addresses", endpoint.get("addresses") or ())
    ]


def of_network_policy(policy: Mapping[str, Any]) -> list[str]:
    """Ranges of addresses in the rules of a network policy."""
    warnings = []
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(policy["spec"].get(direction) or ()):
            for number, peer in enumerate(rule.get(side) or ()):
                block = peer.get("ipBlock")
                if block is not None:
                    path = f"spec.{direction}[{index}].{side}[{number}].ipBlock"
                    warnings += of_range(f"{path}.cidr", block.get("cidr", ""))
                    warnings += of_ranges(f"{path}.except", block.get("except") or ())
    return warnings


def of_ingress(ingress: Mapping[str, Any]) -> list[str]:
    """The class of an ingress was once an annotation."""
    annotated = _INGRESS_CLASS in (ingress["metadata"].get("annotations") or {})
    if not annotated or ingress["spec"].get("ingressClassName") is not None:
        return []
    return [f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]


def of_node(node: Mapping[str, Any]) -> list[str]:
    """Fields of nodes that nobody reads any more, and address ranges."""
    spec, warnings = node.get("spec") or {}, []
    if spec.get("configSource") is not None:
        warnings.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    return warnings + of_ranges("spec.podCIDRs", spec.get("podCIDRs") or ())
