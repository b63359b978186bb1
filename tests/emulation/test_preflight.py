"""The plan of a run: the sleep time and requests of each pod, and whether a node can hold it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.emulation.preflight import ClusterNodes, plan_jobs
from batkube.emulation.settings import Emulation, parse_request_mapping
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant, seconds
from batkube.platforms.reader import read_platform
from batkube.workloads.model import Composed, Delay, Job, ParallelHomogeneous, Workload
from emulation.builders import make_job

NODES = ClusterNodes(["a", "b"], [{"cpu": 2000, "memory": 2**30}, {"cpu": 4000, "memory": 2**20}])


def emulation_with(**options: object) -> Emulation:
    return Emulation(Path("kubeconfig"), (Path("w.json"),), **options)  # type: ignore[arg-type]


def workload_of(*jobs: Job, name: str = "w0") -> Workload:
    return Workload(name, f"{name}.json", jobs)


def test_pods_sleep_for_the_run_time_or_until_the_walltime() -> None:
    long, cut = plan_jobs(
        [workload_of(make_job("1"), make_job("2", walltime=seconds(4)))], emulation_with(), NODES, None
    )

    assert (long.run_time, long.sleep, long.exceeds_walltime) == (seconds(10), seconds(10), False)
    assert (cut.run_time, cut.sleep, cut.exceeds_walltime) == (seconds(4), seconds(4), True)


@given(speed=st.sampled_from([0.5, 1.0, 10.0, 100.0]), clock=st.sampled_from([1.0, 20.0, 100.0]))
def test_a_pod_takes_the_same_real_time_at_every_speed_of_the_clusters_clock(speed: float, clock: float) -> None:
    nodes = ClusterNodes(NODES.names, NODES.allocatable, clock)

    (planned,) = plan_jobs([workload_of(make_job())], emulation_with(speed=speed), nodes, None)

    assert planned.run_time == seconds(10)
    assert planned.sleep / clock == pytest.approx(seconds(10) / speed)


def test_jobs_of_several_workloads_are_merged_in_order_of_submission() -> None:
    first = workload_of(make_job("1", submit=Instant(5)), make_job("2", submit=Instant(20)))
    second = workload_of(make_job("1", workload="w1", submit=Instant(10)), name="w1")

    planned_jobs = plan_jobs([first, second], emulation_with(), NODES, None)

    assert [(planned.number, planned.job.key) for planned in planned_jobs] == [(0, "w0!1"), (1, "w1!1"), (2, "w0!2")]


def test_a_job_fits_if_one_node_has_all_its_requests() -> None:
    fits = make_job(requests=(("cpu", 2000), ("memory", 2**30)))
    nowhere = make_job(requests=(("cpu", 4000), ("memory", 2**30)))

    assert len(plan_jobs([workload_of(fits)], emulation_with(), NODES, None)) == 1
    with pytest.raises(InputError, match="requests cpu 4, memory 1Gi, which no node of the cluster has"):
        plan_jobs([workload_of(nowhere)], emulation_with(), NODES, None)
    assert (
        len(
            plan_jobs(
                [workload_of(nowhere)], emulation_with(mappings=(parse_request_mapping("cpu=x0.5"),)), NODES, None
            )
        )
        == 1
    )


def test_a_job_without_requests_requests_a_machine_if_nodes_have_that_resource() -> None:
    nodes = ClusterNodes(["a"], [{"cpu": 1000, "batkube.io/machine": 1}])

    (planned,) = plan_jobs([workload_of(make_job(requests=()))], emulation_with(), nodes, None)

    assert planned.requests == (("batkube.io/machine", 1),)


def test_the_exit_code_of_a_sequence_is_that_of_its_failed_part() -> None:
    parts = (Delay(name="a", duration=seconds(1), ret=7), Delay(name="b", duration=seconds(5)))

    (planned,) = plan_jobs(
        [workload_of(make_job(profile=Composed(name="c", parts=parts)))], emulation_with(), NODES, None
    )

    assert (planned.run_time, planned.exit_code) == (seconds(1), 7)


def test_a_computing_profile_needs_a_platform_with_speeds(tmp_path: Path) -> None:
    computes = make_job(profile=ParallelHomogeneous(name="p", cpu_flops=5e9, com_bytes=0.0))
    with pytest.raises(InputError, match="--platform"):
        plan_jobs([workload_of(computes)], emulation_with(), NODES, None)
    path = tmp_path / "platform.xml"
    path.write_text(
        '<?xml version="1.0"?><platform version="4.1"><zone id="z" routing="Full">'
        '<host id="a" speed="1Gf" core="4"/></zone></platform>'
    )

    (planned,) = plan_jobs([workload_of(computes)], emulation_with(), NODES, read_platform(str(path)))

    assert planned.run_time == seconds(5)
