"""Which jobs overtook a waiting job or pod, and by which rule."""

from __future__ import annotations

from collections.abc import Sequence

from batkube.kernel.instants import human_duration
from batkube.kernel.quantities import MACHINE
from batkube.outputs.explain.evidence import Evidence
from batkube.outputs.explain.model import Overtaker
from batkube.outputs.explain.phrases import amount_text
from batkube.outputs.explain.scheduling_rules import SchedulingRule
from batkube.outputs.explain.units import Unit


def overtakers_of(units: Sequence[Unit], unit: Unit, rule: SchedulingRule, evidence: Evidence) -> tuple[Overtaker, ...]:
    """Return the units that were queued after `unit` and had all their nodes before it, in order of time."""
    overtakers = []
    for other in units:
        bound = other.bound
        if bound is None or not unit.queued <= bound < unit.wait_end or other.name == unit.name:
            continue
        if other.is_queued_after(unit):
            text = _rule_text(other, unit, rule, evidence)
            overtakers.append(Overtaker(other.name, other.queued, bound, other.size, text))
    return tuple(sorted(overtakers, key=lambda overtaker: overtaker.placed))


def _smaller_requests(other: Unit, unit: Unit) -> str:
    """Return the resources of which `other` requests less in total; "" if it requests more of any."""
    resources = dict.fromkeys([*other.requests, *unit.requests])
    pairs = {name: (_total(other, name), _total(unit, name)) for name in resources}
    if any(theirs > ours for theirs, ours in pairs.values()):
        return ""
    smaller = {name: pair for name, pair in pairs.items() if pair[0] < pair[1]}
    if MACHINE in smaller:
        return "{} machines < {}".format(*smaller[MACHINE])
    return ", ".join(
        f"{name} {amount_text(name, theirs)} < {amount_text(name, ours)}" for name, (theirs, ours) in smaller.items()
    )


def _total(unit: Unit, resource: str) -> int:
    return unit.size * unit.requests.get(resource, 0)


def _rule_text(other: Unit, unit: Unit, rule: SchedulingRule, evidence: Evidence) -> str:
    """Return why `other` was allowed to overtake: the recorded reason, or the rule of the scheduler."""
    recorded = evidence.start_reason(other.name, other.bound)
    if recorded:
        return recorded
    if other.priority > unit.priority and rule.has_priorities:
        return f"its priority is higher: {other.priority} > {unit.priority}"
    if rule.compares_requests and (smaller := _smaller_requests(other, unit)):
        return f"it requests less: {smaller}"
    if rule.strict_order == "estimate" and other.estimate is not None and unit.estimate is not None:
        return f"its estimate is shorter: {human_duration(other.estimate)} < {human_duration(unit.estimate)}"
    return rule.overtaking
