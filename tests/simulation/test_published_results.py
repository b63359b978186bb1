"""Exact results of theory and of other simulators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import batkube
import published

if TYPE_CHECKING:
    from conftest import Simulate


@pytest.mark.headline
@pytest.mark.parametrize(
    ("workload", "platform", "policy", "makespan", "mean_wait"),
    [
        ("burst", published.SIXTEEN, "fcfs", 2210.0, 979.2),
        ("spaced", published.SIXTEEN, "fcfs", 2280.0, 57.6),
        ("kit", published.SIX_CORES, "fcfs", 32554.0, 2487.6),
        ("kit", published.SIX_CORES, "first-fit", 32554.0, 2201.4),
    ],
)
def test_the_2020_experiments_have_their_theoretical_values(
    tmp_path: Path, workload: str, platform: str, policy: str, makespan: float, mean_wait: float
) -> None:
    run = batkube.run(
        workload=published.WORKLOADS[workload](tmp_path),
        platform=platform,
        scheduler=f"policy:{policy}",
    )

    assert run.schedule["makespan"] == makespan
    assert run.schedule["mean_waiting_time"] == pytest.approx(mean_wait, abs=0.05)  # the references have one decimal


@pytest.mark.headline
def test_easy_has_the_801_starting_times_and_allocations_of_batsim(tmp_path: Path) -> None:
    expected = {row["job"]: row for row in published.table("medium_late.csv")}
    assert len(expected) == 801

    run = batkube.run(workload=published.medium_late(tmp_path), platform="32x1", scheduler="policy:easy")

    actual = {row["job_id"]: row for row in run.jobs.to_dict("records")}
    assert actual.keys() == expected.keys()
    for name, row in expected.items():
        # Both print six decimals of the same sums, but Batsim adds doubles, so the last digit may differ.
        assert actual[name]["starting_time"] == pytest.approx(float(row["start"]), abs=1.5e-6), name
        assert actual[name]["allocated_resources"] == row["machines"], name
    assert run.schedule["mean_waiting_time"] == pytest.approx(9.516326, abs=1e-6)


def backfilling_cases() -> list[tuple[str, str]]:
    families = {
        "fcfs": ("basic", "fcfs"),
        "easy": ("basic", "bf", "easy_bf"),
        "conservative": ("basic", "bf", "cons_bf"),
    }
    return [(policy, family) for policy, names in families.items() for family in names]


@pytest.mark.parametrize(("policy", "family"), backfilling_cases())
@pytest.mark.parametrize("ids", ["as given", "by line"])
def test_jobs_of_the_backfilling_instances_end_at_the_second_in_their_names(
    simulate: Simulate, policy: str, family: str, ids: str
) -> None:
    """Jobs of one instant are submitted in the order of their ids, as in Batsim.

    Therefore each instance runs twice: with its ids, and with ids that keep the order of the lines.
    """
    instances = published.backfilling(family)
    assert instances

    for instance, rows in instances.items():
        names = [row["end"] if ids == "as given" else f"{number:04d}" for number, row in enumerate(rows)]
        run = simulate(
            [
                {
                    "id": name,
                    "subtime": float(row["submit"]),
                    "walltime": float(row["walltime"]),
                    "res": int(row["size"]),
                    "profile": row["run"],
                }
                for name, row in zip(names, rows, strict=True)
            ],
            {row["run"]: {"type": "delay", "delay": float(row["run"])} for row in rows},
            platform="100x1",
            scheduler=f"policy:{policy}",
        )

        ends = dict(zip(run.jobs["job_id"], run.jobs["finish_time"], strict=True))
        assert ends == {name: int(float(row["end"])) for name, row in zip(names, rows, strict=True)}, instance
