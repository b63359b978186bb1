"""Parses platform shorthands: `16x4`, `16 x 4,16Gi,2`, `16x4 + 2x8,64Gi,4`."""

from __future__ import annotations

import re

from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, GPU, MEMORY
from batkube.platforms.builder import MACHINES_MAX, build_platform, parse_amount, with_default_pods
from batkube.platforms.model import Machine, Platform

_PREFIX = re.compile(r"\s*[0-9]+\s*[xX×]")
_GROUP = re.compile(r"\s*(?P<count>[0-9]{1,9})\s*[xX×]\s*(?P<each>[^\s,]+(?:\s*,[^,]*){0,2})\s*", re.ASCII)
_REMEDY = "write N x CPU[,MEMORY][,GPUS], as in 16x4 or 16x4,64Gi,2; join groups with +"
#: The minimum memory of a machine: in `16x4,2`, the 2 is probably meant to be GPUs.
_MEMORY_MIN_BYTES = 2**20


def is_shorthand(spec: str) -> bool:
    """Return whether `spec` begins like a shorthand: a number and an x."""
    return _PREFIX.match(spec) is not None


def parse_shorthand(spec: str) -> Platform:
    """Return the platform of a shorthand; its machines are called node-0, node-1, …. Raise InputError."""
    source = spec.strip()
    machines: list[Machine] = []
    for group in spec.split("+"):
        count, capacity = _parse_group(source, group)
        if len(machines) + count > MACHINES_MAX:
            raise InputError(source, problem=f"more than {MACHINES_MAX} machines", remedy="use fewer")
        first = len(machines)
        machines += [Machine(id=i, name=f"node-{i}", capacity=capacity) for i in range(first, first + count)]
    return build_platform(source, machines, remedy=_REMEDY)


def _parse_group(source: str, group: str) -> tuple[int, dict[str, int]]:
    match = _GROUP.fullmatch(group)
    if match is None:
        raise InputError(source, at=repr(group.strip()), problem="is not a group of machines", remedy=_REMEDY)
    cpu, memory, gpu = ([part.strip() for part in match["each"].split(",")] + ["", ""])[:3]
    capacity = {CPU: parse_amount(source, "cpu", CPU, cpu)}
    if memory:
        capacity[MEMORY] = parse_amount(source, "memory", MEMORY, memory)
        if capacity[MEMORY] < _MEMORY_MIN_BYTES:
            raise InputError(
                source,
                at="memory",
                problem=f"{memory} means {capacity[MEMORY]} bytes",
                remedy=f"write {memory}Gi if it is memory, or {match['count']}x{cpu},,{memory} if it is GPUs",
            )
    if gpu:
        capacity[GPU] = parse_amount(source, "gpu", GPU, gpu)
    return int(match["count"]), with_default_pods(capacity)
