"""Texts for cells: labels, selectors, containers, truncated lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NONE = "<none>"
UNSET = "<unset>"

_OPERATORS = {"In": "in", "NotIn": "notin"}


def format_labels(pairs: Mapping[str, str] | None) -> str:
    """Format labels as `a=1,b=2` (Kubernetes: labels.FormatLabels)."""
    return ",".join(f"{key}={value}" for key, value in sorted(pairs.items())) if pairs else NONE


def format_selector(value: Mapping[str, Any] | None) -> str:
    """Format a label selector in the notation of `kubectl -l`, "" if it selects everything or is not set.

    Kubernetes: LabelSelectorAsSelector(…).String(), which sorts requirements by key and values by name.
    """
    if not value:
        return ""
    requirements = [(key, f"{key}={label}") for key, label in value.get("matchLabels", {}).items()]
    requirements += [(part["key"], _format_requirement(part)) for part in value.get("matchExpressions", ())]
    return ",".join(text for _, text in sorted(requirements, key=lambda requirement: requirement[0]))


def _format_requirement(expression: Mapping[str, Any]) -> str:
    key, operator = expression["key"], expression["operator"]
    if operator in _OPERATORS:
        return f"{key} {_OPERATORS[operator]} ({','.join(sorted(expression.get('values', ())))})"
    return f"!{key}" if operator == "DoesNotExist" else str(key)


def format_selector_or_none(value: Mapping[str, Any] | None) -> str:
    """Format a label selector, `<none>` if it is empty (Kubernetes: metav1.FormatLabelSelector)."""
    return format_selector(value) or NONE


def format_go_selector(value: Mapping[str, Any]) -> str:
    """Format a label selector as Go prints the struct, which a few printers do."""
    pairs = "".join(f"{key}: {label}," for key, label in sorted(value.get("matchLabels", {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{part['key']},Operator:{part['operator']},"
        f"Values:[{' '.join(part.get('values', ()))}],}},"
        for part in value.get("matchExpressions", ())
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


def container_cells(template: Mapping[str, Any] | None) -> list[str]:
    """Return the names and the images of a pod template's containers (Kubernetes: layoutContainerCells)."""
    containers = (template or {}).get("spec", {}).get("containers") or ()
    return [",".join(part.get(field, "") for part in containers) for field in ("name", "image")]


def join_first_three(parts: Sequence[str]) -> str:
    """Join the first three parts, and the number of the others (Kubernetes: listWithMoreString)."""
    return join_first(parts, 3) or UNSET


def join_first(parts: Sequence[str], limit: int, separator: str = ",") -> str:
    """Join the first parts, and the number of the others."""
    text = separator.join(parts[:limit])
    return f"{text} + {len(parts) - limit} more..." if len(parts) > limit else text


def load_balancer_addresses(status: Mapping[str, Any]) -> str:
    """Return the unique addresses of a load balancer, sorted (Kubernetes: loadBalancerStatusStringer)."""
    entries = status.get("loadBalancer", {}).get("ingress") or ()
    addresses = {entry.get("ip") or entry.get("hostname") or "" for entry in entries}
    return ",".join(sorted(addresses - {""}))


def format_bool(value: bool | None) -> str:
    """Format a bool as `True`, `False` or `<unset>` (Kubernetes: printBoolPtr)."""
    return UNSET if value is None else str(value)
