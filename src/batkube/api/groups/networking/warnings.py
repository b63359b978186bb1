"""Warnings about policies and ingresses. Kubernetes: pkg/registry/networking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.address_warnings import cidr_list_warnings, cidr_warnings

_INGRESS_CLASS = "kubernetes.io/ingress.class"


def network_policy_warnings(policy: Mapping[str, Any]) -> list[str]:
    """Ranges of addresses in the rules of a network policy."""
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
    """The class of an ingress was once an annotation."""
    annotated = _INGRESS_CLASS in (ingress["metadata"].get("annotations") or {})
    if not annotated or ingress["spec"].get("ingressClassName") is not None:
        return []
    return [f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"]
