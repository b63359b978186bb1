"""A real control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK, in real time.

Opt-in: building the programs takes half an hour the first time, and the runs are in real time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import batkube
from batkube.emulation.agreement import agreement_of
from batkube.emulation.client.connection import ClusterConnection
from batkube.emulation.control_plane.plane import ControlPlane, control_plane
from batkube.emulation.emulate import emulate
from batkube.emulation.settings import Emulation, JobKind
from batkube.kernel.errors import RunFailed
from batkube.outputs.results import Results
from opt_in import slow

pytestmark = slow("builds and runs a real control plane")
PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kube-scheduler"]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with four nodes of one cpu."""
    with control_plane(tmp_path_factory.mktemp("plane") / "files", "4x1,4Gi", report=print) as one:
        yield one


def written(folder: Path, count: int, length_s: float) -> Path:
    path = folder / "workload.json"
    jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "one", "cpu": "1"} for number in range(count)]
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": {"one": {"type": "delay", "delay": length_s}}}))
    return path


def test_every_program_runs_and_reports_its_cost(plane: ControlPlane) -> None:
    assert sorted(plane.cpu_seconds()) == sorted(PROGRAMS)
    assert all(size > 10**7 for size in plane.peak_memory_bytes().values())
    assert ClusterConnection(plane.kubeconfig).get("/version")["gitVersion"] == "v1.34.4"


@pytest.mark.parametrize("kind", [JobKind.POD, JobKind.JOB])
def test_a_run_on_a_real_control_plane_is_predicted(plane: ControlPlane, tmp_path: Path, kind: JobKind) -> None:
    workload = written(tmp_path, 20, 8)

    emulate(Emulation(plane.kubeconfig, (workload,), platform="4x1,4Gi", kind=kind), tmp_path / "real")
    simulated = batkube.run(workload=workload, platform="4x1,4Gi", scheduler="kube-scheduler@1.34.4")

    agreement = agreement_of(Results(tmp_path / "real"), simulated)
    assert agreement.jobs == 20
    assert abs(agreement.makespan_error) < 0.05
    assert ClusterConnection(plane.kubeconfig).get("/api/v1/pods")["items"] == []


def test_a_program_that_exits_is_reported_with_its_last_lines(plane: ControlPlane) -> None:
    try:
        with pytest.raises(RunFailed, match=r"kube-scheduler ended with code 1(.|\n)*podMaxBackoffSeconds"):
            plane.start_scheduler({"podMaxBackoffSeconds": -1})
    finally:
        plane.start_scheduler()
