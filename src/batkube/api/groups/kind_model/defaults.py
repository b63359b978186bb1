"""How a default gets into an object: the two notions of "not given" that Go has, and amounts rounded to thousandths.

A Go field that is a pointer is not given when it is nil: zero, false and "" are values then. Any other field is not
given when it is zero. Every default of Kubernetes is one or the other, so each table of defaults is used with one of
the two functions below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from batkube.kernel.quantities import Quantity, parse_quantity

Defaults = Mapping[str, Any]
"""Values by field; scalars only, because they are shared by everything they are put into."""

_NANOS_PER_MILLI = 10**6
TCP: Defaults = {"protocol": "TCP"}


def fill_absent(value: dict[str, Any], defaults: Defaults) -> None:
    """Give `value` those defaults whose field is absent: for fields that are pointers in Go."""
    for name, default in defaults.items():
        if value.get(name) is None:
            value[name] = default


def fill_empty(value: dict[str, Any], defaults: Defaults) -> None:
    """Give `value` those defaults whose field is absent or zero: for fields that are not pointers in Go."""
    for name, default in defaults.items():
        if not value.get(name):
            value[name] = default


def ensure_struct(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the struct at `name` to write into, made first if it is not there."""
    inner: dict[str, Any] | None = value.get(name)
    if inner is None:
        inner = value[name] = {}
    return inner


def list_items(value: dict[str, Any], name: str) -> Iterable[dict[str, Any]]:
    """Return the elements of the list at `name`, none if there is no list."""
    return value.get(name) or ()


def round_resource_lists(holder: dict[str, Any], *names: str) -> None:
    """Round the quantities in the resource lists at `names` up to thousandths (SetDefaults_ResourceList).

    A canonical quantity finer than that ends in `n` or `u`, or has a negative exponent; all others are left alone.
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
