"""Results that theory or other simulators give, exactly."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import batkube

if TYPE_CHECKING:
    from conftest import Simulate


@pytest.mark.headline
@pytest.mark.parametrize(
    ("workload", "platform", "policy", "makespan", "mean_wait"),
    [
        ("200_delay170.json", "platform_graphene_16nodes.xml", "fcfs", 2210.0, 979.2),
        ("spaced_200_delay170.json", "platform_graphene_16nodes.xml", "fcfs", 2280.0, 57.6),
        ("KIT_10h_80.json", "1node_6core.xml", "fcfs", 32554.0, 2487.6),
        ("KIT_10h_80.json", "1node_6core.xml", "first-fit", 32554.0, 2201.4),
    ],
)
def test_the_2020_experiments_have_their_theoretical_values(
    shared_data: Path, tmp_path: Path, workload: str, platform: str, policy: str, makespan: float, mean_wait: float
) -> None:
    run = batkube.run(
        workload=shared_data / "batkube" / "workloads" / workload,
        platform=shared_data / "batkube" / "platforms" / platform,
        scheduler=f"policy:{policy}",
    )

    assert run.schedule["makespan"] == makespan
    assert run.schedule["mean_waiting_time"] == pytest.approx(mean_wait, abs=0.05)  # the references have one decimal


@pytest.mark.headline
def test_easy_gives_batsim_s_801_starting_times_and_allocations(shared_data: Path) -> None:
    folder = shared_data / "medium_late"
    with (folder / "easy" / "out_jobs.csv").open(newline="") as file:
        expected = {row["job_id"]: row for row in csv.DictReader(file)}

    run = batkube.run(workload=folder / "medium_late.json", platform="32x1", scheduler="policy:easy")

    actual = {row["job_id"]: row for row in run.jobs.to_dict("records")}
    assert actual.keys() == expected.keys()
    for name, row in expected.items():
        # Both print six decimals of the same sums, Batsim's of doubles: the last digit may differ.
        assert actual[name]["starting_time"] == pytest.approx(float(row["starting_time"]), abs=1.5e-6), name
        assert actual[name]["allocated_resources"] == row["allocated_resources"], name
    assert run.schedule["mean_waiting_time"] == pytest.approx(9.516326, abs=1e-6)


def backfilling_cases() -> list[tuple[str, str]]:
    families = {
        "fcfs": ("basic_input", "fcfs_input"),
        "easy": ("basic_input", "bf_input", "easy_bf_input"),
        "conservative": ("basic_input", "bf_input", "cons_bf_input"),
    }
    return [(policy, family) for policy, names in families.items() for family in names]


@pytest.mark.parametrize(("policy", "family"), backfilling_cases())
@pytest.mark.parametrize("ids", ["as given", "by line"])
def test_the_backfilling_instances_end_when_their_ids_say(
    simulate: Simulate, shared_data: Path, policy: str, family: str, ids: str
) -> None:
    """Goal: every job of every instance ends at the time its id states.

    Jobs of one instant are submitted in the order of their ids (Batsim's rule), so each instance runs twice: with the
    ids it has, and with ids that keep the order of the lines.
    """
    cases = sorted((shared_data / "backfilling").glob(f"{family}.*"))
    assert cases

    for case in cases:
        lines = [line.split() for line in case.read_text().splitlines() if line.strip() and line[0] != "#"]
        names = [fields[1] if ids == "as given" else f"{number:04d}" for number, fields in enumerate(lines)]
        run = simulate(
            [
                {"id": name, "subtime": float(f[0]), "walltime": float(f[2]), "res": int(f[3]), "profile": f[4]}
                for name, f in zip(names, lines, strict=True)
            ],
            {fields[4]: {"type": "delay", "delay": float(fields[4])} for fields in lines},
            platform="100x1",
            scheduler=f"policy:{policy}",
        )

        ends = dict(zip(run.jobs["job_id"], run.jobs["finish_time"], strict=True))
        assert ends == {name: int(float(f[1])) for name, f in zip(names, lines, strict=True)}, case.name
