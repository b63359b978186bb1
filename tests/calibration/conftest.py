"""Synthetic recordings."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from batkube.kernel.distributions import parse_distribution
from batkube.kernel.streams import Streams

COLUMNS = (
    *("job_id", "profile", "submission_time", "requested_number_of_resources", "success", "starting_time"),
    *("execution_time", "finish_time", "allocated_resources", "scheduled", "pulling", "pulled", "created"),
)

Row = dict[str, object]
Write = Callable[[str, Sequence[Row]], Path]

#: The steps of a synthetic cluster, in the notation of a latencies file.
TRUTH = {
    "notice.first": "normal:3,0.2",
    "notice.later": "lognormal:0.5,0.15",
    "pull": "uniform:15,25",
    "check": "gamma:30,0.03",
    "create": "lognormal:0.05,0.5",
    "start": "constant:0.1",
    "report": "uniform:0,1",
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a jobs.csv, with default or empty cells for missing columns."""

    def write_rows(name: str, rows: Sequence[Row]) -> Path:
        path = tmp_path / name
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            for number, row in enumerate(rows, 1):
                defaults = {"job_id": number, "profile": "d", "success": 1, "requested_number_of_resources": 1}
                writer.writerow({**defaults, **row})
        return path

    return write_rows


def recorded_rows(
    nodes: int = 4, waves: int = 50, seed: int = 0, length: float = 10.0, truth: Mapping[str, str] = TRUTH
) -> list[Row]:
    """Return the rows of a run with the steps `truth`; each node runs one job after the other."""
    streams = Streams(seed)

    def draw(step: str) -> float:
        return max(0.0, parse_distribution(truth[step]).draw(streams.named(step)))

    rows: list[Row] = []
    for node in range(nodes):
        free_at = 0.0
        for wave in range(waves):
            scheduled = free_at
            pulling = scheduled + draw("notice.later" if wave else "notice.first")
            pulled = pulling + draw("check" if wave else "pull")
            created = pulled + draw("create")
            started = created + draw("start")
            finished = free_at = started + length + draw("report")
            times = {
                "submission_time": 0.0,
                "scheduled": scheduled,
                "pulling": pulling,
                "pulled": pulled,
                "created": created,
                "starting_time": started,
                "execution_time": finished - started,
                "finish_time": finished,
            }
            rows.append({name: f"{value:.3f}" for name, value in times.items()} | {"allocated_resources": node})
    return rows
