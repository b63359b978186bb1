"""Warnings about NetworkPolicies and Ingresses. Kubernetes: pkg/registry/networking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.address_warnings import cidr_list_warnings, cidr_warnings

_INGRESS_CLASS = "kubernetes.io/ingress.class"


def network_policy_warnings(policy: Mapping[str, Any]) -> list[str]:
    """Return the warnings about IP blocks in the rules of a NetworkPolicy."""
    warnings = []
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(policy["spec"].get(direction) or ()):
            for number, peer in enumerate(rule.get(side) or ()):
                block = peer.get("ipBlock")
                if block is not None:
                    path = f"spec.{direction}[{index}].{side}[{number}].ipBlock"
                    warnings += cidr_warnings(f"{path}.cidr", block.get("cidr", ""))
                    warnings += cidr_list_warnings(f"{path}.except", block.get("except") or ())
    return warnings


def ingress_warnings(ingress: Mapping[str, Any]) -> list[str]:
    """Return the warning about the deprecated annotation kubernetes.io/ingress.class."""
    annotated = _INGRESS_CLASS in (ingress["metadata"].get("annotations") or {})
    if not annotated or ingress["spec"].get("ingressClassName") is not None:
        return []
    return [f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]
