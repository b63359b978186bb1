"""Cells of webhook configurations and policies (Kubernetes: pkg/printers/internalversion/printers.go)."""

from __future__ import annotations

from typing import Any

from batkube.api.printing.ages import age
from batkube.api.printing.cell_texts import UNSET, format_go_selector
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


def webhook_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a mutating or validating webhook configuration."""
    return [value["metadata"].get("name", ""), len(value.get("webhooks") or ()), age(value, now)]


def validating_policy_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a ValidatingAdmissionPolicy."""
    return _policy_cells(value, "validations", now)


def mutating_policy_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a MutatingAdmissionPolicy."""
    return _policy_cells(value, "mutations", now)


def _policy_cells(value: KubeObject, rules: str, now: Instant) -> list[Any]:
    spec = value.get("spec", {})
    kind = spec.get("paramKind")
    text = UNSET if kind is None else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"
    return [value["metadata"].get("name", ""), len(spec.get(rules) or ()), text, age(value, now)]


def policy_binding_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a binding of an admission policy, validating or mutating."""
    spec = value.get("spec", {})
    parameter, text = spec.get("paramRef") or {}, UNSET
    if parameter.get("name"):
        text = f"{parameter.get('namespace') or '*'}/{parameter['name']}"
    elif parameter.get("selector") is not None:
        text = format_go_selector(parameter["selector"])
    return [value["metadata"].get("name", ""), spec.get("policyName", ""), text, age(value, now)]
