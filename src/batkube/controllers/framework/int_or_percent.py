"""Numbers and percentages: `3`, `"25%"` (apimachinery: util/intstr/intstr.go, GetScaledValueFromIntOrPercent)."""

from __future__ import annotations


def scaled_value(value: int | str, total: int, *, round_up: bool) -> int:
    """Return `value` as a number; percentages are those of `total`."""
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * total
    return -(-share // 100) if round_up else share // 100
