"""The matchers of resource-query by name: the subsystems that a walk follows, the leading one first.

Imitates the option --match-subsystems of flux-sched resource/utilities/resource-query.cpp.
"""

from __future__ import annotations

from batkube.graph.resources import CONTAINMENT
from batkube.kernel.errors import InputError

MATCHERS = {
    "CA": (CONTAINMENT,),
    "IBA": ("ibnet",),
    "IBBA": ("ibnetbw",),
    "PA": ("power",),
    "PFS1BA": ("pfs1bw",),
    "C+IBA": (CONTAINMENT, "ibnet"),
    "C+IBBA": (CONTAINMENT, "ibnetbw"),
    "C+PA": (CONTAINMENT, "power"),
    "C+PFS1BA": (CONTAINMENT, "pfs1bw"),
    "IB+IBBA": ("ibnet", "ibnetbw"),
    "C+P+IBA": (CONTAINMENT, "power", "ibnet"),
    "V+PFS1BA": ("virtual1", "pfs1bw"),
    "VA": ("virtual1",),
    "ALL": (CONTAINMENT, "ibnet", "ibnetbw", "pfs1bw", "power"),
}


def subsystems_of(matcher: str) -> tuple[str, ...]:
    """Return the subsystems of a matcher. Raises InputError if the name is unknown."""
    subsystems = MATCHERS.get(matcher.upper())
    if subsystems is None:
        raise InputError("the matcher", problem=f"{matcher!r} is unknown", remedy=f"use one of {', '.join(MATCHERS)}")
    return subsystems
