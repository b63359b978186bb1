"""The matchers that resource-query knows by name: which subsystems a walk goes along, the leading one first."""

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
    """Return the subsystems of a matcher. Raises InputError for a name there is not."""
    subsystems = MATCHERS.get(matcher.upper())
    if subsystems is None:
        problem = f"is {matcher!r}, which is unknown"
        raise InputError("the matcher", problem=problem, remedy=f"it is one of {', '.join(MATCHERS)}")
    return subsystems
