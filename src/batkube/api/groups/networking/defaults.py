"""Defaults of IngressClasses and NetworkPolicies. Kubernetes: pkg/apis/networking/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.kind_model.defaults import ensure_struct, fill_absent, list_items


def set_network_policy_defaults(obj: dict[str, Any]) -> None:
    """Set the policy types (Ingress, and Egress if there are egress rules), and TCP as the protocol of ports."""
    spec = ensure_struct(obj, "spec")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in list_items(spec, direction):
            for port in list_items(rule, "ports"):
                fill_absent(port, {"protocol": "TCP"})


def set_ingress_class_defaults(obj: dict[str, Any]) -> None:
    """Set the scope of an IngressClass's parameters to Cluster."""
    parameters = (obj.get("spec") or {}).get("parameters")
    if parameters is not None:
        fill_absent(parameters, {"scope": "Cluster"})
