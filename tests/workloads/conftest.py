"""Fixtures for tests of workloads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from batkube.kernel.instants import Instant, seconds
from batkube.workloads.delay_profiles import DelayProfiles
from batkube.workloads.model import Job, Workload

MakeWorkload = Callable[..., Workload]


@pytest.fixture
def delays_at() -> MakeWorkload:
    """Return a function that makes a workload of delay jobs from (submit, run time, size) triples, in seconds."""

    def make(*rows: tuple[float, float, int], size_machines: int | None = None, **fields: object) -> Workload:
        delays = DelayProfiles()
        jobs = [
            Job(
                workload="w0",
                name=str(number),
                submit=Instant(seconds(submit)),
                size=size,
                profile=delays.profile_for(seconds(run)),
                **fields,  # type: ignore[arg-type]
            )
            for number, (submit, run, size) in enumerate(rows)
        ]
        return Workload(name="w0", source="test", jobs=jobs, size_machines=size_machines)

    return make
