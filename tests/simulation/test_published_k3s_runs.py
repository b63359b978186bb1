"""The simulation compared with the published runs on k3s, with latencies calibrated on *burst* alone.

docs/explanation/trust.md describes the comparison and has the results of twenty seeds. Here is one.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

import batkube
import published
from batkube.calibration.calibrate import Calibration, calibrate
from batkube.calibration.latencies_file import latencies_text

NEWEST = "kube-scheduler@1.34.4"
FILES = {"burst": "200_delay170", "spaced": "spaced_200_delay170"}


def recordings(shared_data: Path, workload: str) -> list[Path]:
    return sorted((shared_data / "batkube" / "emulated").glob(f"{FILES[workload]}_[0-9]_jobs.csv"))


@pytest.fixture(scope="module")
def calibrated_on_burst(shared_data: Path) -> Calibration:
    return calibrate(recordings(shared_data, "burst"))


def test_recorded_columns_show_the_client_limit_image_checks_and_system_pods(
    calibrated_on_burst: Calibration,
) -> None:
    found = calibrated_on_burst

    assert found.client is not None
    assert (found.client.qps, found.client.burst) == (5, 10), "client-go's defaults"
    assert (found.nodes.used, found.nodes.peak_concurrency) == (15, 15), "of 16"
    assert found.cached_share == pytest.approx(0.9), "one run of ten began with empty nodes"
    means = {one.sample.step: round(one.mean, 1) for one in found.fits}
    assert means["check"] == 1.0
    assert means["pull"] > 15
    assert means["notice.first"] > 2 * means["notice.later"]


def test_the_published_latencies_are_those_calibrated_on_burst(calibrated_on_burst: Calibration) -> None:
    assert latencies_text(calibrated_on_burst) == published.K3S_LATENCIES.read_text()


@pytest.mark.parametrize("workload", FILES)
def test_the_published_figures_are_means_of_the_recorded_runs(shared_data: Path, workload: str) -> None:
    makespans, waits = [], []
    for path in recordings(shared_data, workload):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        makespans.append(max(float(row["finish_time"]) for row in rows))
        waits.append(fmean(float(row["waiting_time"]) for row in rows))

    assert published.K3S[workload] == pytest.approx((fmean(makespans), fmean(waits)), abs=0.001)


@pytest.mark.parametrize(
    ("scheduler", "workload", "makespan_within", "wait_within"),
    [
        ("kube-scheduler@1.19.0", "burst", 0.02, 0.05),
        ("kube-scheduler@1.19.0", "spaced", 0.02, 0.05),
        # In current versions no pod waits in back-off while a node is free, so burst is faster.
        pytest.param(NEWEST, "burst", 0.03, 0.05, marks=pytest.mark.headline),
        pytest.param(NEWEST, "spaced", 0.02, 0.05, marks=pytest.mark.headline),
    ],
)
def test_makespan_and_mean_wait_equal_those_of_the_real_cluster(
    tmp_path: Path,
    built_program: Callable[[str], str],
    scheduler: str,
    workload: str,
    makespan_within: float,
    wait_within: float,
) -> None:
    # The newest version is built by the first test that needs it; the version of the real cluster takes minutes more.
    scheduler = scheduler if scheduler == NEWEST else built_program(scheduler)
    run = batkube.run(
        workload=published.WORKLOADS[workload](tmp_path),
        platform=published.SIXTEEN,
        scheduler=scheduler,
        latencies=published.K3S_LATENCIES,
        seed=1,
        out=tmp_path / "out",
    )

    makespan, wait = published.K3S[workload]
    assert run.jobs["finish_time"].max() == pytest.approx(makespan, rel=makespan_within)
    assert run.jobs["waiting_time"].mean() == pytest.approx(wait, rel=wait_within)
