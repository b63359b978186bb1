"""The rules of known schedulers, by name: the order of the queue, and when a job may overtake."""

from __future__ import annotations

import msgspec


class SchedulingRule(msgspec.Struct, frozen=True):
    """How a scheduler orders its queue, and by which rule jobs overtake."""

    #: What its order is by, if the first waiting job blocks all others: `submission`, `estimate`, `priority`; else "".
    strict_order: str = ""
    #: For whom it holds free resources back: the `first` waiting job, or `any`; "" if it does not.
    reserves_for: str = ""
    #: Whether a higher priority alone may decide which job is placed first.
    has_priorities: bool = False
    #: Whether a job is placed as soon as it fits, so that smaller ones overtake.
    compares_requests: bool = False
    #: Why a job may be placed before one that was queued earlier.
    overtaking: str = ""


_FITS = "it fitted: this policy starts every job that fits"
_RULES = {
    "fcfs": SchedulingRule("submission", overtaking="the other job was queued again after it was stopped"),
    "sleep": SchedulingRule("submission", overtaking="the other job was queued again after it was stopped"),
    "sjf": SchedulingRule("estimate", overtaking="its estimate is shorter"),
    "priority": SchedulingRule("priority", has_priorities=True, overtaking="its priority is higher"),
    "easy": SchedulingRule(reserves_for="first", overtaking="EASY backfilling: it did not delay the head of the queue"),
    "conservative": SchedulingRule(
        reserves_for="any", overtaking="conservative backfilling: it delayed no planned start"
    ),
    "fluxion": SchedulingRule(reserves_for="any", overtaking="it fitted beside the reservations"),
    "first-fit": SchedulingRule(compares_requests=True, overtaking=_FITS),
    "best-fit": SchedulingRule(compares_requests=True, overtaking=_FITS),
    "worst-fit": SchedulingRule(compares_requests=True, overtaking=_FITS),
    "random": SchedulingRule(compares_requests=True, overtaking=_FITS),
}
_ALIASES = {"pack": "best-fit", "spread": "worst-fit", "fifo": "fcfs"}
_UNKNOWN_POLICY = SchedulingRule(overtaking="the policy decided so")
_PROGRAM = SchedulingRule(
    has_priorities=True, compares_requests=True, overtaking="its pods fitted, or came first in the scheduler's queue"
)


def rule_of(scheduler: str) -> SchedulingRule:
    """Return the rule of a scheduler by its name in the manifest, such as `policy:easy`."""
    name = scheduler.removeprefix("policy:")
    if name == scheduler:
        return _PROGRAM
    return _RULES.get(_ALIASES.get(name, name), _UNKNOWN_POLICY)
