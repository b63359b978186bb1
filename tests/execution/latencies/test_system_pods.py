"""System pods take resources of their nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.execution.latencies.latency_files import PROFILES, jobs, latencies

from batkube.kernel.errors import InputError

if TYPE_CHECKING:
    from conftest import Simulate


def test_a_system_pod_keeps_jobs_of_a_whole_node_off_its_node(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "system-pods: [{name: coredns, cpu: 100m}]")

    run = simulate(jobs(6), PROFILES, platform="4x1", scheduler="policy:first-fit", latencies=file)

    assert sorted(run.jobs["allocated_resources"].unique()) == ["0", "1", "2"]
    assert run.jobs["finish_time"].max() == 20
    assert run.manifest["latencies"]["system-pods"] == "coredns, cpu 100m"


def test_several_system_pods_get_one_node_each(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "system-pods: [{name: a, cpu: 100m}, {name: b, cpu: 100m}]")

    run = simulate(jobs(6), PROFILES, platform="4x1", scheduler="policy:first-fit", latencies=file)

    assert sorted(run.jobs["allocated_resources"].unique()) == ["0", "1"]


def test_a_job_without_room_beside_a_system_pod_is_rejected_before_the_run(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "system-pods: [{name: coredns, cpu: 100m}]")

    with pytest.raises(InputError, match="at most cpu 900m"):
        simulate(jobs(1), PROFILES, platform="1x1", latencies=file)


def test_a_system_pod_that_does_not_fit_is_rejected(simulate: Simulate, tmp_path: Path) -> None:
    file = latencies(tmp_path, "system-pods: [{name: huge, cpu: 2}]")

    with pytest.raises(
        InputError, match=r"latencies.yaml: system-pods: .*not have enough cpu for the system pod 'huge'"
    ):
        simulate(jobs(1), PROFILES, platform="1x1", latencies=file)
