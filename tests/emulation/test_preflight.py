"""What is known before a run: how long each pod is to sleep, what it asks for, and whether it can be placed."""

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


def described(**options: object) -> Emulation:
    return Emulation(Path("kubeconfig"), (Path("w.json"),), **options)  # type: ignore[arg-type]


def workload_of(*jobs: Job, name: str = "w0") -> Workload:
    return Workload(name, f"{name}.json", jobs)


def test_pods_sleep_as_long_as_jobs_run_until_their_walltime() -> None:
    long, cut = plan_jobs([workload_of(make_job("1"), make_job("2", walltime=seconds(4)))], described(), NODES, None)

    assert (long.run_time, long.sleep, long.exceeds_walltime) == (seconds(10), seconds(10), False)
    assert (cut.run_time, cut.sleep, cut.exceeds_walltime) == (seconds(4), seconds(4), True)


@given(speed=st.sampled_from([0.5, 1.0, 10.0, 100.0]), clock=st.sampled_from([1.0, 20.0, 100.0]))
def test_a_pod_takes_the_same_real_time_whatever_the_clusters_clock_is(speed: float, clock: float) -> None:
    nodes = ClusterNodes(NODES.names, NODES.allocatable, clock)

    (task,) = plan_jobs([workload_of(make_job())], described(speed=speed), nodes, None)

    assert task.run_time == seconds(10)
    assert task.sleep / clock == pytest.approx(seconds(10) / speed)


def test_jobs_of_several_workloads_are_played_in_the_order_of_submission() -> None:
    first = workload_of(make_job("1", submit=Instant(5)), make_job("2", submit=Instant(20)))
    second = workload_of(make_job("1", workload="w1", submit=Instant(10)), name="w1")

    tasks = plan_jobs([first, second], described(), NODES, None)

    assert [(task.number, task.job.key) for task in tasks] == [(0, "w0!1"), (1, "w1!1"), (2, "w0!2")]


def test_a_job_fits_if_one_node_has_all_that_it_asks_for() -> None:
    fits = make_job(requests=(("cpu", 2000), ("memory", 2**30)))
    nowhere = make_job(requests=(("cpu", 4000), ("memory", 2**30)))

    assert len(plan_jobs([workload_of(fits)], described(), NODES, None)) == 1
    with pytest.raises(InputError, match="requests cpu 4, memory 1Gi, which no node of the cluster has"):
        plan_jobs([workload_of(nowhere)], described(), NODES, None)
    assert (
        len(plan_jobs([workload_of(nowhere)], described(mappings=(parse_request_mapping("cpu=x0.5"),)), NODES, None))
        == 1
    )


def test_a_job_without_requests_takes_a_machine_where_nodes_offer_machines() -> None:
    nodes = ClusterNodes(["a"], [{"cpu": 1000, "batkube.io/machine": 1}])

    (task,) = plan_jobs([workload_of(make_job(requests=()))], described(), nodes, None)

    assert task.requests == (("batkube.io/machine", 1),)


def test_the_exit_code_of_a_sequence_is_that_of_the_part_that_failed() -> None:
    parts = (Delay(name="a", duration=seconds(1), ret=7), Delay(name="b", duration=seconds(5)))

    (task,) = plan_jobs([workload_of(make_job(profile=Composed(name="c", parts=parts)))], described(), NODES, None)

    assert (task.run_time, task.exit_code) == (seconds(1), 7)


def test_a_job_that_computes_needs_a_platform_with_speeds(tmp_path: Path) -> None:
    computes = make_job(profile=ParallelHomogeneous(name="p", cpu_flops=5e9, com_bytes=0.0))
    with pytest.raises(InputError, match="--platform"):
        plan_jobs([workload_of(computes)], described(), NODES, None)
    path = tmp_path / "platform.xml"
    path.write_text(
        '<?xml version="1.0"?><platform version="4.1"><zone id="z" routing="Full">'
        '<host id="a" speed="1Gf" core="4"/></zone></platform>'
    )

    (task,) = plan_jobs([workload_of(computes)], described(), NODES, read_platform(str(path)))

    assert task.run_time == seconds(5)
