"""Helpers for defaults: Go's two notions of an unset field, and rounding of quantities.

A pointer field in Go is unset if it is nil; zero, false and "" are values then. Any other field is unset if it is zero.
Every default in Kubernetes follows one of these rules, so each table of defaults is used with one of the two functions
below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from batkube.kernel.quantities import Quantity, parse_quantity

Defaults = Mapping[str, Any]
"""Default values by field; scalars only, because objects share them."""

_NANOS_PER_MILLI = 10**6
TCP: Defaults = {"protocol": "TCP"}


def fill_absent(value: dict[str, Any], defaults: Defaults) -> None:
    """Set defaults of absent fields, for fields that are pointers in Go."""
    for name, default in defaults.items():
        if value.get(name) is None:
            value[name] = default


def fill_empty(value: dict[str, Any], defaults: Defaults) -> None:
    """Set defaults of absent or zero fields, for fields that are not pointers in Go."""
    for name, default in defaults.items():
        if not value.get(name):
            value[name] = default


def ensure_struct(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the struct at `name` for writing, created if it is missing."""
    inner: dict[str, Any] | None = value.get(name)
    if inner is None:
        inner = value[name] = {}
    return inner


def list_items(value: dict[str, Any], name: str) -> Iterable[dict[str, Any]]:
    """Return the items of the list at `name`, none if there is no list."""
    return value.get(name) or ()


def round_resource_lists(holder: dict[str, Any], *names: str) -> None:
    """Round the quantities in the resource lists at `names` up to thousandths (SetDefaults_ResourceList).

    A canonical quantity finer than that ends in `n` or `u`, or has a negative exponent; all others are unchanged.
    """
    for name in names:
        amounts = holder.get(name)
        if amounts:
            for resource, text in amounts.items():
                if text[-1] in "nu" or "e-" in text:
                    amounts[resource] = _round_to_milli(text)


def _round_to_milli(text: str) -> str:
    quantity = parse_quantity(text)
    millis = -(-quantity.nanos // _NANOS_PER_MILLI)
    return str(Quantity(millis * _NANOS_PER_MILLI, quantity.format))


def round_resource_requirements(holder: dict[str, Any], name: str = "resources") -> None:
    """Round the limits and requests of the requirements at `name`."""
    requirements = holder.get(name)
    if requirements:
        round_resource_lists(requirements, "limits", "requests")
