"""The wait, the placement and the end of an execution, as lines of text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from batkube.kernel.instants import Instant
from batkube.outputs.explain.model import (
    Cause,
    ExecutionExplanation,
    FailedAttempts,
    NodeChoice,
    Overtaker,
    PlannedStart,
    WaitPeriod,
)
from batkube.outputs.explain.phrases import MAX_NAMES, end_text, exact_time, name_list

#: How many periods of a wait are printed.
_MAX_PERIODS = 12
_ORDERS = {
    "submission": "jobs start in order of submission",
    "estimate": "the shortest job starts first",
    "priority": "the job of the highest priority starts first",
}


class PlacementText:
    """The lines of one execution. `counted` is the plural of what a job consists of: machines or pods."""

    def __init__(self, placement: ExecutionExplanation, counted: str) -> None:
        self._placement = placement
        self._counted = counted

    def lines(self) -> Iterator[str]:
        """Yield the lines, without indentation."""
        placement = self._placement
        yield f"{exact_time(placement.queued)}  queued"
        for period in placement.periods[:_MAX_PERIODS]:
            yield from self._period_lines(period)
        if len(placement.periods) > _MAX_PERIODS:
            yield f"… and {len(placement.periods) - _MAX_PERIODS} more periods of its wait (--json has all)"
        yield from _reservation_lines(placement.reservations)
        yield from self._overtaking_lines(placement.overtaken_by)
        for attempt in placement.attempts:
            yield _attempt_line(attempt)
        yield from self._outcome_lines()

    def _outcome_lines(self) -> Iterator[str]:
        placement = self._placement
        is_later = [placement.bound is not None and fact.at >= placement.bound for fact in placement.facts]
        lines = [f"{exact_time(fact.at)}  {fact.text}" for fact in placement.facts]
        yield from itertools.compress(lines, (not later for later in is_later))
        if placement.bound is not None:
            yield from self._placed_lines(placement.bound)
        elif placement.first_bound is not None:
            since = exact_time(placement.first_bound)
            yield f"{since}  its first pod got a node; not all of its {self._count(placement.pods)} did"
        else:
            yield f"never placed; it waited for {exact_time(placement.waited)}"
        for choice in placement.choices[:MAX_NAMES]:
            yield from _choice_lines(choice)
        if placement.started is not None and placement.started != placement.bound:
            yield f"{exact_time(placement.started)}  running"
        yield from itertools.compress(lines, is_later)
        if placement.ended is not None:
            yield f"{exact_time(placement.ended)}  ended"

    def _placed_lines(self, bound: Instant) -> Iterator[str]:
        placement = self._placement
        wait = f"after {exact_time(placement.waited)}" if placement.waited else "at once"
        reason = f"; {placement.start_reason}" if placement.start_reason else ""
        yield f"{exact_time(bound)}  placed {wait} on {name_list(placement.nodes)}{reason}"
        if placement.released_by:
            yield f"  resources were freed when {name_list(placement.released_by)} ended"
        if placement.first_bound is not None and placement.first_bound < bound:
            held = exact_time(bound - placement.first_bound)
            yield f"  its first pod had a node since {exact_time(placement.first_bound)}: {held} before the last one"

    def _period_lines(self, period: WaitPeriod) -> Iterator[str]:
        span = f"{exact_time(period.begin)} – {end_text(period.end)}"
        if period.cause is Cause.ORDER:
            first = f"{period.first_count} jobs, lastly {period.first}" if period.first_count > 1 else period.first
            yield f"{span}  behind {first}: {_ORDERS.get(period.order, period.order)}"
        elif period.cause is Cause.RESERVATION:
            free = f"free {self._counted} were reserved for {period.first or 'other jobs'}"
            yield f"{span}  it would have fitted, but {free}"
        elif period.cause is Cause.SCHEDULER:
            yield f"{span}  its requests would have fitted, but the scheduler did not place it"
        else:
            yield f"{span}  {self._shortage(period)}"
            yield from self._holder_lines(period)

    def _shortage(self, period: WaitPeriod) -> str:
        if self._counted == "machines":
            available = f"only {period.capacity} machines accept jobs"
            most = f"at most {period.fitting}" if period.fitting else "none"
            free = f"{most} of {period.capacity} {'were' if period.fitting else 'was'} free"
        else:
            available = f"only {period.capacity} fit on all nodes together"
            free = f"{f'at most {period.fitting}' if period.fitting else 'none'} fitted on the nodes"
        return f"it needed {self._count(period.needed)}; {available if period.capacity < period.needed else free}"

    def _holder_lines(self, period: WaitPeriod) -> Iterator[str]:
        for holder in period.holders[:MAX_NAMES]:
            what = self._count(holder.pods)
            if self._counted != "machines":
                what = f"{what} on {name_list(holder.nodes)}"
            yield f"  {holder.name} had {what} from {exact_time(holder.since)} to {end_text(holder.until)}"
        rest = period.holders[MAX_NAMES:]
        if rest:
            yield f"  {len(rest)} more had {self._count(sum(holder.pods for holder in rest))}"
        if period.earlier_holders:
            others = "1 other" if period.earlier_holders == 1 else f"{period.earlier_holders} others"
            yield f"  {others} held some earlier in this period"

    def _overtaking_lines(self, overtakers: Sequence[Overtaker]) -> Iterator[str]:
        if not overtakers:
            return
        yield f"overtaken by {len(overtakers)} that {'was' if len(overtakers) == 1 else 'were'} queued later:"
        largest = sorted(overtakers, key=lambda overtaker: -overtaker.pods)[:MAX_NAMES]
        for overtaker in sorted(largest, key=lambda overtaker: overtaker.placed):
            name = f"{overtaker.name} ({self._count(overtaker.pods)})"
            yield f"  {exact_time(overtaker.placed)}  {name}: {overtaker.rule}"
        if len(overtakers) > MAX_NAMES:
            yield f"  … and {len(overtakers) - MAX_NAMES} more, none larger than these"

    def _count(self, count: int) -> str:
        return f"{count} {self._counted.removesuffix('s') if count == 1 else self._counted}"


def _reservation_lines(reservations: Sequence[PlannedStart]) -> Iterator[str]:
    if not reservations:
        return
    first, last = reservations[0], reservations[-1]
    after = f", after {name_list(last.after)}" if last.after else ""
    start = f"from {exact_time(last.start)} at the latest"
    yield f"{exact_time(last.at)}  reserved: machines {last.machines} {start}{after}"
    if len(reservations) > 1:
        planned = f"planned {len(reservations)} times"
        yield f"  {planned}; the first plan, at {exact_time(first.at)}: from {exact_time(first.start)}"


def _attempt_line(attempt: FailedAttempts) -> str:
    if attempt.count == 1:
        text = f"{exact_time(attempt.first)}  an attempt failed"
    else:
        text = f"{exact_time(attempt.first)} – {exact_time(attempt.last)}  {attempt.count} attempts failed"
    plugins = f" [{', '.join(attempt.plugins)}]" if attempt.plugins else ""
    return f"{text}: {attempt.reason or 'no reason was given'}{plugins}"


def _choice_lines(choice: NodeChoice) -> Iterator[str]:
    yield f"  {choice.pod}: {choice.feasible} of {choice.evaluated} nodes fitted"
    if not choice.best:
        return
    for score in choice.best:
        plugins = " + ".join(f"{name} {points}" for name, points in score.plugins.items() if points)
        yield f"    {score.node}: {score.score}{f' = {plugins}' if plugins else ''}"
    if choice.tied > 1:
        yield f"    {choice.node} was selected at random among the {choice.tied} nodes with the highest score"
    else:
        yield f"    {choice.node} had the highest score"
