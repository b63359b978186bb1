"""schedulers.csv: a row for each of the schedulers that shared a cluster."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from batkube.cluster.jobs.outcomes import FinalState, Outcome
from batkube.kernel.instants import format_seconds


class SchedulerShare(NamedTuple):
    """The part of one scheduler in a run."""

    #: Its name in the scenario.
    name: str
    serves: Sequence[str]
    bindings: int
    bindings_refused: int
    pods_rejected: int


COLUMNS = (
    "scheduler",
    "serves",
    "jobs",
    "jobs_success",
    "mean_waiting_time",
    "bindings",
    "bindings_refused",
    "pods_rejected",
)


def write_schedulers(path: Path, shares: Iterable[SchedulerShare], outcomes: Sequence[Outcome]) -> None:
    """Write the header and a row for each scheduler, in the order of the scenario."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for share in shares:
            own_outcomes = [outcome for outcome in outcomes if outcome.job.scheduler in share.serves]
            waits = [outcome.started - outcome.job.submit for outcome in own_outcomes if outcome.started is not None]
            mean = format_seconds(round(sum(waits) / len(waits))) if waits else ""
            succeeded = sum(outcome.state is FinalState.SUCCESS for outcome in own_outcomes)
            cells = (share.name, " ".join(share.serves), len(own_outcomes), succeeded, mean)
            writer.writerow((*cells, share.bindings, share.bindings_refused, share.pods_rejected))
