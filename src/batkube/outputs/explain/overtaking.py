"""Who overtook a waiting job or pod, and by which rule."""

from __future__ import annotations

from collections.abc import Sequence

from batkube.kernel.instants import human_duration
from batkube.outputs.explain.evidence import Evidence
from batkube.outputs.explain.model import Overtaker
from batkube.outputs.explain.scheduling_rules import SchedulingRule
from batkube.outputs.explain.units import Unit


def overtakers_of(units: Sequence[Unit], unit: Unit, rule: SchedulingRule, evidence: Evidence) -> tuple[Overtaker, ...]:
    """Return the units that were queued after `unit` and had all their nodes before it, in order of time."""
    overtakers = []
    for other in units:
        bound = other.bound
        if bound is None or not unit.queued <= bound < unit.wait_end or other.name == unit.name:
            continue
        if (other.queued, other.number) > (unit.queued, unit.number):
            text = _rule_text(other, unit, rule, evidence)
            overtakers.append(Overtaker(other.name, other.queued, bound, other.size, text))
    return tuple(sorted(overtakers, key=lambda overtaker: overtaker.placed))


def _rule_text(other: Unit, unit: Unit, rule: SchedulingRule, evidence: Evidence) -> str:
    """Return why `other` was allowed to overtake: the recorded reason, or the rule of the scheduler."""
    recorded = evidence.start_reason(other.name, other.bound)
    if recorded:
        return recorded
    if other.priority > unit.priority and rule.strict_order != "estimate":
        return f"its priority is higher: {other.priority} > {unit.priority}"
    if rule.strict_order == "estimate" and other.estimate is not None and unit.estimate is not None:
        return f"its estimate is shorter: {human_duration(other.estimate)} < {human_duration(unit.estimate)}"
    return rule.overtaking
