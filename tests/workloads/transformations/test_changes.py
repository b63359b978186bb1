"""Counts of what a transformation changed."""

from __future__ import annotations

from fractions import Fraction

from batkube.kernel.instants import Instant, seconds
from batkube.workloads.model import Delay, Job, Workload
from batkube.workloads.transformations import conversions, selection
from batkube.workloads.transformations.changes import changes_between

JOBS = [
    Job(
        workload="w0",
        name=str(number),
        submit=Instant(seconds(number)),
        size=number,
        profile=Delay(name=f"d{number}", duration=seconds(10 * number)),
        walltime=seconds(1000) if number > 1 else None,
    )
    for number in range(1, 5)
]
TRACE = Workload(name="w0", source="t", jobs=JOBS)


def test_walltimes_that_existed_are_told_from_those_that_did_not() -> None:
    replaced = conversions.walltimes_from_run_times(TRACE, Fraction(2))

    assert changes_between(TRACE, replaced) == {"walltimes replaced": 3, "walltimes added": 1}
    assert changes_between(TRACE, conversions.without_walltimes(TRACE)) == {"walltimes removed": 3}


def test_only_values_that_differ_count() -> None:
    part = selection.first_jobs(TRACE, 3)

    assert changes_between(TRACE, TRACE) == {}
    assert changes_between(TRACE, conversions.shift_to_zero(part)) == {
        "jobs left out": 1,
        "submission times changed": 3,
    }
    assert changes_between(TRACE, conversions.trim_run_times(TRACE, seconds(20))) == {"run times changed": 2}
    assert changes_between(TRACE, conversions.pack_machines(TRACE, 2)) == {"sizes changed": 3}
    assert changes_between(TRACE, conversions.with_scheduler(TRACE, "x")) == {"schedulers changed": 4}
    assert changes_between(TRACE, conversions.normalise_cpu(TRACE, 4000)) == {
        "sizes changed": 3,
        "requests changed": 4,
    }
