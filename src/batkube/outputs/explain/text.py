"""An explanation as lines of English."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batkube.kernel.instants import Instant, human_duration
from batkube.kernel.quantities import CPU, MACHINE, MEMORY
from batkube.outputs.explain.model import (
    Attempt,
    Cause,
    Choice,
    Explanation,
    Holder,
    JobExplanation,
    NodeExplanation,
    Overtaker,
    Placement,
    PodExplanation,
    Reservation,
    WaitPeriod,
)

#: How many entries of a list are printed; --json has all.
_MAX_NAMES = 5
_MAX_PERIODS = 12
_MAX_STAYS = 20
_ORDERS = {
    "submission": "jobs start in order of submission",
    "estimate": "the shortest job starts first",
    "priority": "the job of the highest priority starts first",
}


def lines_of(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of an explanation."""
    if isinstance(explanation, NodeExplanation):
        yield from _node_lines(explanation)
        return
    yield _title(explanation)
    if not explanation.has_reasons:
        yield "No reasons were recorded (`batkube run --explain`): causes are derived from the journal."
    count = len(explanation.executions)
    for number, placement in enumerate(explanation.executions, start=1):
        if count > 1:
            yield ""
            yield f"Execution {number} of {count}"
        for line in _placement_lines(placement):
            yield f"  {line}"
    if isinstance(explanation, JobExplanation) and explanation.final_state:
        yield f"Outcome: {explanation.final_state}."
    elif isinstance(explanation, PodExplanation):
        yield f"Outcome: {explanation.phase}."


def _title(explanation: JobExplanation | PodExplanation) -> str:
    if isinstance(explanation, PodExplanation):
        owner = (
            f" of job {explanation.job}" if explanation.job else f" of {explanation.owner}" if explanation.owner else ""
        )
        requests = ", ".join(f"{_amount(name, amount)} {name}" for name, amount in explanation.requests.items())
        return f"Pod {explanation.name}{owner}, {explanation.scheduler}{f', requests {requests}' if requests else ''}"
    parts = [f"Job {explanation.name}", explanation.scheduler]
    if explanation.size is not None:
        parts.append(f"size {explanation.size}")
    if explanation.walltime is not None:
        parts.append(f"walltime {human_duration(explanation.walltime)}")
    if explanation.priority:
        parts.append(f"priority {explanation.priority}")
    if explanation.user:
        parts.append(f"user {explanation.user}")
    return ", ".join(parts)


def _placement_lines(placement: Placement) -> Iterator[str]:
    yield f"{_at(placement.queued)}  queued"
    for period in placement.periods[:_MAX_PERIODS]:
        yield from _period_lines(period)
    if len(placement.periods) > _MAX_PERIODS:
        yield f"… and {len(placement.periods) - _MAX_PERIODS} more periods of its wait (--json has all)"
    yield from _reservation_lines(placement.reservations)
    yield from _overtaking_lines(placement.overtaken_by)
    for attempt in placement.attempts:
        yield _attempt_line(attempt)
    for fact in placement.facts:
        yield f"{_at(fact.at)}  {fact.text}"
    yield from _outcome_lines(placement)


def _outcome_lines(placement: Placement) -> Iterator[str]:
    if placement.bound is None:
        if placement.first_bound is not None:
            yield f"{_at(placement.first_bound)}  its first pod got a node; not all of its {placement.pods} pods did"
        else:
            yield f"never placed; it waited for {human_duration(placement.waited)}"
    else:
        wait = f"after {human_duration(placement.waited)}" if placement.waited else "at once"
        reason = f" ({placement.start_reason})" if placement.start_reason else ""
        yield f"{_at(placement.bound)}  placed {wait} on {_names(placement.nodes)}{reason}"
        if placement.released_by:
            yield f"  it fitted when {_names(placement.released_by)} ended"
        if placement.first_bound is not None and placement.first_bound < placement.bound:
            held = human_duration(placement.bound - placement.first_bound)
            yield f"  its first pod had a node since {_at(placement.first_bound)}, and waited {held} for the others"
    for choice in placement.choices[:_MAX_NAMES]:
        yield from _choice_lines(choice)
    if placement.started is not None and placement.started != placement.bound:
        yield f"{_at(placement.started)}  running"
    if placement.ended is not None:
        yield f"{_at(placement.ended)}  ended"


def _period_lines(period: WaitPeriod) -> Iterator[str]:
    span = f"{_at(period.begin)} – {'the end of the run' if period.end is None else _at(period.end)}"
    if period.cause is Cause.ORDER:
        others = f", the last of {period.first_count} such jobs" if period.first_count > 1 else ""
        yield f"{span}  behind {period.first}{others}: {_ORDERS.get(period.order, period.order)}"
    elif period.cause is Cause.RESERVATION:
        yield f"{span}  it would have fitted, but free resources were reserved for other jobs"
    elif period.cause is Cause.SCHEDULER:
        yield f"{span}  there was room for its pods, as far as requests tell, and the scheduler did not place it"
    else:
        yield f"{span}  {_shortage(period)}"
        for holder in period.holders[:_MAX_NAMES]:
            yield f"  {_holder_text(holder)}"
        rest = len(period.holders) - _MAX_NAMES
        if rest > 0:
            pods = sum(holder.pods for holder in period.holders[_MAX_NAMES:])
            yield f"  {rest} others held room, too, with {pods} pods"
        if period.earlier_holders:
            yield f"  {period.earlier_holders} others held room earlier in this time"


def _shortage(period: WaitPeriod) -> str:
    if period.capacity < period.needed:
        return f"it needed room for {period.needed} pods, and all nodes together have room for {period.capacity}"
    most = f"at most {period.fitting}" if period.fitting else "none"
    return f"it needed room for {period.needed} pods of {period.capacity}; {most} were free"


def _holder_text(holder: Holder) -> str:
    until = "the end of the run" if holder.until is None else _at(holder.until)
    return f"{holder.name} held {holder.pods} from {_at(holder.since)} to {until}"


def _reservation_lines(reservations: Sequence[Reservation]) -> Iterator[str]:
    if not reservations:
        return
    first, last = reservations[0], reservations[-1]
    after = f", after {_names(last.after)}" if last.after else ""
    yield f"{_at(last.at)}  reserved: machines {last.machines} from {_at(last.start)} at the latest{after}"
    if len(reservations) > 1:
        change = "the same" if first.start == last.start else f"{_at(first.start)} at first"
        yield f"  its planned start was computed {len(reservations)} times: {change}"


def _overtaking_lines(overtakers: Sequence[Overtaker]) -> Iterator[str]:
    if not overtakers:
        return
    yield f"overtaken by {len(overtakers)} {'job' if len(overtakers) == 1 else 'jobs'} that were queued later:"
    largest = sorted(overtakers, key=lambda overtaker: -overtaker.pods)[:_MAX_NAMES]
    for overtaker in sorted(largest, key=lambda overtaker: overtaker.placed):
        yield f"  {_at(overtaker.placed)}  {overtaker.name} ({overtaker.pods} pods): {overtaker.rule}"
    if len(overtakers) > _MAX_NAMES:
        yield f"  … and {len(overtakers) - _MAX_NAMES} smaller ones"


def _attempt_line(attempt: Attempt) -> str:
    span = _at(attempt.first) if attempt.count == 1 else f"{_at(attempt.first)} – {_at(attempt.last)}"
    times = "an attempt failed" if attempt.count == 1 else f"{attempt.count} attempts failed"
    plugins = f" [{', '.join(attempt.plugins)}]" if attempt.plugins else ""
    return f"{span}  {times}: {attempt.reason or 'no reason was given'}{plugins}"


def _choice_lines(choice: Choice) -> Iterator[str]:
    yield f"  {choice.pod}: {choice.feasible} of {choice.evaluated} nodes that were checked fitted"
    if not choice.best:
        return
    for score in choice.best:
        plugins = ", ".join(f"{name} {points}" for name, points in score.plugins.items() if points)
        yield f"    {score.node:20} {score.score:5}  {plugins}"
    if choice.tied > 1:
        yield f"    {choice.node} was drawn at random among the {choice.tied} with the highest score"
    else:
        yield f"    {choice.node} had the highest score"


def _node_lines(node: NodeExplanation) -> Iterator[str]:
    capacity = ", ".join(f"{_amount(name, amount)} {name}" for name, amount in node.capacity.items() if name != MACHINE)
    place = ", ".join(
        f"{label} {value}" for label, value in (("zone", node.zone), ("rack", node.rack), ("pool", node.pool)) if value
    )
    yield f"Node {node.name}, machine {node.machine}: {capacity}{f'; {place}' if place else ''}"
    for begin, end in node.existed:
        yield f"  existed from {_at(begin)} to {'the end of the run' if end is None else _at(end)}"
    for use in node.uses:
        peak, total = _amount(use.resource, use.peak), _amount(use.resource, use.capacity)
        yield f"  {use.resource}: {use.mean:.1%} used on average, {peak} of {total} at most"
    yield f"  empty for {human_duration(node.idle)}"
    for status in node.statuses:
        yield f"  {status.status} from {_at(status.begin)} to {'the end' if status.end is None else _at(status.end)}"
    yield f"  {len(node.stays)} jobs or pods were on it:"
    for stay in node.stays[:_MAX_STAYS]:
        pods = f" ({stay.pods} pods)" if stay.pods > 1 else ""
        yield f"    {_at(stay.since)} – {'the end' if stay.until is None else _at(stay.until)}  {stay.name}{pods}"
    if len(node.stays) > _MAX_STAYS:
        yield f"    … and {len(node.stays) - _MAX_STAYS} more (--json has all)"


def _names(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    if more > 0:
        return f"{', '.join(names[:_MAX_NAMES])} and {more} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else "nothing"


def _amount(resource: str, amount: int) -> str:
    if resource == CPU:
        return f"{amount / 1000:g}"
    if resource == MEMORY:
        return f"{amount / 2**30:.4g} GiB"
    return f"{amount:,}"


def _at(instant: Instant) -> str:
    return human_duration(instant) if instant >= 0 else f"-{human_duration(-instant)}"
