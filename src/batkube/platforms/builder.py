"""Shared by the readers of all platform formats: parses amounts, and builds platforms from machines."""

from __future__ import annotations

from collections.abc import Sequence

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.quantities import CPU, PODS
from batkube.kernel.quantities import parse_amount as parse_quantity
from batkube.platforms.model import DEFAULT_PODS, Machine, Platform

#: The maximum number of machines: a description of more is a typing error, and would exhaust the memory.
MACHINES_MAX = 1_000_000

_EXAMPLES = {CPU: "4 or 500m", "memory": "16Gi"}


def parse_amount(source: str, at: str, resource: str, value: object) -> int:
    """Parse the amount of `resource` at the place `at` of a file. Raise InputError."""
    try:
        if not isinstance(value, str | int | float):
            raise ValueError(f"{value!r} is not a quantity")
        amount = parse_quantity(resource, value)
    except ValueError as error:
        example = _EXAMPLES.get(resource, "a whole number")
        raise InputError(source, at=at, problem=str(error), remedy=f"write {example}") from None
    if amount == 0 and resource == CPU:
        raise InputError(
            source, at=at, problem="the machine has no cpu", remedy="write a positive amount, or omit the machine"
        )
    return amount


def with_default_pods(capacity: dict[str, int]) -> dict[str, int]:
    """Return `capacity` with the kubelet's default number of pods, unless it has one."""
    return capacity if PODS in capacity else {**capacity, PODS: DEFAULT_PODS}


def build_platform(
    source: str, machines: Sequence[Machine], *, remedy: str, notes: tuple[tuple[FidelityNote, int], ...] = ()
) -> Platform:
    """Return the platform of `machines`. Raise InputError for duplicate names, or with `remedy` if there are none."""
    if not machines:
        raise InputError(source, problem="contains no machine that can run jobs", remedy=remedy)
    ids: dict[str, int] = {}
    for machine in machines:
        first = ids.setdefault(machine.name, machine.id)
        if first != machine.id:
            raise InputError(
                source,
                at=f"machine {machine.name!r}",
                problem=f"two machines have this name (numbers {first} and {machine.id})",
                remedy="use unique names",
            )
    return Platform(source=source, machines=tuple(machines), notes=notes)
