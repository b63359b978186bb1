"""Periods of a given utilisation, computed by hand and by evalys."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.model import Workload
from batkube.workloads.transformations.utilisation import (
    BusyInterval,
    find_period,
    offered_intervals,
    periods,
    recorded_intervals,
)

MakeWorkload = Callable[..., Workload]


def busy(start_s: int, end_s: int, processors: int) -> BusyInterval:
    return seconds(start_s), seconds(end_s), processors


def test_utilisation_is_the_mean_share_of_processors_in_use() -> None:
    # From 10 to 20: 4 of 8 for all of it, and 4 more for half of it. From 20 to 30: only the last 2 seconds.
    intervals = [busy(0, 20, 4), busy(12, 17, 4), busy(28, 45, 8)]

    windows = periods(intervals, 8, seconds(10))

    assert [(period.begin, period.end, period.utilisation) for period in windows] == [
        (seconds(10), seconds(20), pytest.approx(0.75)),
        (seconds(20), seconds(30), pytest.approx(0.2)),
        (seconds(30), seconds(40), pytest.approx(1.0)),
    ]


def test_the_first_and_the_last_period_are_excluded() -> None:
    assert periods([busy(0, 10, 1)], 1, seconds(5)) == []
    assert len(periods([busy(0, 16, 1)], 1, seconds(5))) == 2


def test_the_nth_matching_period_is_returned(delays_at: MakeWorkload) -> None:
    workload = delays_at((0, 100, 1), (20, 10, 1), (60, 10, 1), size_machines=2)

    first, second = (
        find_period(workload, offered_intervals(workload), seconds(10), target=1.0, variation=0.01, nth=nth)
        for nth in (1, 2)
    )

    assert (first.begin, second.begin) == (seconds(20), seconds(60))


@pytest.mark.parametrize(
    ("size_machines", "period_s", "nth", "part"),
    [
        (None, 10, 1, "has no machine size"),
        (2, 10, 3, "has 1 periods of 10 s .* not 3"),
        (2, 0, 1, "period longer than 0"),
        (2, 1000, 1, "has 0 periods"),
    ],
)
def test_a_utilisation_without_a_matching_period_is_rejected(
    delays_at: MakeWorkload, size_machines: int | None, period_s: int, nth: int, part: str
) -> None:
    workload = delays_at((0, 100, 1), (20, 10, 1), size_machines=size_machines)

    with pytest.raises(InputError, match=part):
        find_period(workload, offered_intervals(workload), seconds(period_s), target=1.0, variation=0.01, nth=nth)


def test_recorded_starts_include_the_wait_time(tmp_path: Path) -> None:
    path = tmp_path / "t.swf"
    path.write_text(
        "1 5 10 20 4 -1 -1 8 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"  # runs from 15 to 35 on 4
        "2 6 -1 20 4 -1 -1 8 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"  # unknown wait time: from 6
        "3 6 -1 -1 4 -1 -1 8 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"  # never ran
        "4 6 -1 20 -1 -1 -1 8 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"  # without processors
    )

    assert recorded_intervals(path) == [busy(15, 35, 4), busy(6, 26, 4)]


EVALYS_COLUMNS = (
    "jobID",
    "submission_time",
    "waiting_time",
    "execution_time",
    "proc_alloc",
    "cpu_used",
    "mem_used",
    "proc_req",
    "user_est",
    "mem_req",
    "status",
    "uid",
    "gid",
    "exe_num",
    "queue",
    "partition",
    "prev_jobs",
    "think_time",
)


@pytest.mark.filterwarnings("ignore")  # warnings of evalys about pandas
@pytest.mark.parametrize(
    ("name", "lines", "processors", "hours", "target", "variation"),
    [
        ("KTH-SP2-1996-2.swf", 1500, 100, 10, 0.8, 0.05),
        ("theta_1000.swf", 1000, 4360, 6, 0.8, 0.1),
    ],
)
def test_evalys_selects_the_same_periods_and_jobs(
    shared_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    lines: int,
    processors: int,
    hours: int,
    target: float,
    variation: float,
) -> None:
    metrics = pytest.importorskip("evalys.metrics")
    evalys_workload = pytest.importorskip("evalys.workload")
    # evalys 4.0.7 calls float() on one-element Series, which pandas 3 rejects. The rest of evalys is unchanged.
    monkeypatch.setattr(
        metrics, "float", lambda value: builtins.float(getattr(value, "iloc", [value])[0]), raising=False
    )
    path = tmp_path / name
    jobs = [line for line in (shared_data / "swf" / name).read_text().splitlines() if not line.startswith(";")]
    path.write_text("\n".join(jobs[:lines]) + "\n")
    # evalys' from_csv needs an older pandas and loses the first job.
    frame = pd.read_csv(path, names=EVALYS_COLUMNS, header=None, sep=r"\s+")

    extracts = evalys_workload.Workload(
        frame, MaxProcs=str(processors), TimeZoneString="Europe/Paris"
    ).extract_periods_with_given_utilisation(hours, target, variation=variation)
    own_periods = [
        period
        for period in periods(recorded_intervals(path), processors, seconds(hours * 3600))
        if abs(period.utilisation - target) <= variation
    ]

    assert len(own_periods) >= 3
    assert [(period.begin, period.end) for period in own_periods] == [
        (seconds(float(extract.ExtractBegin)), seconds(float(extract.ExtractEnd))) for extract in extracts
    ]
    for period, extract in zip(own_periods, extracts, strict=True):
        inside = frame.submission_time.between(period.begin / 1e9, period.end / 1e9, inclusive="left")
        assert sorted(extract.df.jobID) == sorted(frame.jobID[inside])
