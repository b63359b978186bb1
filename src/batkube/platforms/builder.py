"""What the readers of all platform formats have in common: checked amounts, and machines that make a platform."""

from __future__ import annotations

from collections.abc import Sequence

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.quantities import CPU, PODS
from batkube.kernel.quantities import parse_amount as parse_quantity
from batkube.platforms.model import DEFAULT_PODS, Machine, Platform

#: A description of more machines than this is a slip of the pen (and would fill the memory before anyone noticed).
MACHINES_MAX = 1_000_000

_EXAMPLES = {CPU: "4 or 500m", "memory": "16Gi"}


def parse_amount(source: str, at: str, resource: str, value: object) -> int:
    """Return the amount of `resource` that a file gives at the place `at`. Raises InputError."""
    try:
        if not isinstance(value, str | int | float):
            raise ValueError(f"{value!r} is not a quantity")
        counted = parse_quantity(resource, value)
    except ValueError as error:
        example = _EXAMPLES.get(resource, "a whole number")
        raise InputError(
            source, at=at, problem=f"bad amount of {resource}: {error}", remedy=f"write {example}"
        ) from None
    if counted == 0 and resource == CPU:
        raise InputError(source, at=at, problem="a machine without cpu", remedy="give it some, or leave it out")
    return counted


def with_default_pods(capacity: dict[str, int]) -> dict[str, int]:
    """Return `capacity` with the kubelet's default number of pods where none is given."""
    return capacity if PODS in capacity else {**capacity, PODS: DEFAULT_PODS}


def build_platform(
    source: str, machines: Sequence[Machine], *, remedy: str, notes: tuple[tuple[FidelityNote, int], ...] = ()
) -> Platform:
    """Return the platform of `machines`; `remedy` is what to do when there are none. Raises InputError."""
    if not machines:
        raise InputError(source, problem="describes no machine that can run jobs", remedy=remedy)
    first_of: dict[str, int] = {}
    for machine in machines:
        first = first_of.setdefault(machine.name, machine.id)
        if first != machine.id:
            raise InputError(
                source,
                at=f"machine {machine.name!r}",
                problem=f"two machines have this name (numbers {first} and {machine.id})",
                remedy="give every machine its own name",
            )
    return Platform(source=source, machines=tuple(machines), notes=notes)
