"""Summarizes a platform in one line."""

from __future__ import annotations

from collections import Counter

from batkube.kernel.quantities import CPU, GPU, MEMORY, PODS, format_amount
from batkube.platforms.model import DEFAULT_PODS, Machine, Platform

_KINDS_SHOWN = 4


def describe(platform: Platform) -> str:
    """Return a summary such as `18 machines: 16 × 4 cpu, 16Gi + 2 × 8 cpu, 64Gi, 4 gpu`."""
    kinds = Counter(_format_capacity(machine) for machine in platform.machines)
    count = len(platform.machines)
    if count == 1:
        return f"1 machine: {next(iter(kinds))}"
    # A Counter keeps the order of insertion, which is that of the platform.
    parts = [f"{number} × {text}" for text, number in list(kinds.items())[:_KINDS_SHOWN]]
    if len(kinds) > _KINDS_SHOWN:
        hidden = count - sum(list(kinds.values())[:_KINDS_SHOWN])
        parts.append(f"{hidden} of {len(kinds) - _KINDS_SHOWN} other kinds")
    return f"{count} machines: {' + '.join(parts)}"


def _format_capacity(machine: Machine) -> str:
    words = [f"{format_amount(CPU, machine.cpu_milli)} cpu"]
    for resource, number in machine.capacity.items():
        if resource == MEMORY:
            words.append(format_amount(resource, number))
        elif resource == GPU:
            words.append(f"{number} gpu")
        elif resource == PODS and number != DEFAULT_PODS:
            words.append(f"{number} pods")
    return ", ".join(words)
