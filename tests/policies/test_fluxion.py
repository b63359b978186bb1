"""policy:fluxion has the schedules of our queue policies where it must, and places pods inside nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graph.conftest import jgf
from tests.policies.conftest import TinyCluster, a_job, a_machine, whole

from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, GPU, MEMORY
from batkube.platforms.model import Machine
from batkube.policies.conservative import Conservative
from batkube.policies.easy import Easy
from batkube.policies.fcfs import Fcfs
from batkube.policies.fluxion import Fluxion
from batkube.policies.interface import Policy
from batkube.policies.node_room import NodeRoom
from batkube.policies.registry.catalogue import load_policy
from batkube.workloads.model import Job

GIB = 1 << 30


@st.composite
def workloads(draw: st.DrawFn, *, exact: bool) -> list[Job]:
    jobs = []
    for number in range(draw(st.integers(1, 14))):
        run_s = draw(st.integers(1, 12))
        walltime_s = run_s if exact else run_s + draw(st.integers(0, 8))
        jobs.append(
            a_job(
                f"j{number}",
                draw(st.integers(1, 5)),
                run_s,
                submit_s=draw(st.integers(0, 20)),
                walltime_s=walltime_s,
            )
        )
    return sorted(jobs, key=lambda job: job.submit)


def on_machines(count: int) -> TinyCluster:
    return TinyCluster(whole(count), [a_machine(number) for number in range(count)])


def schedules(jobs: list[Job], ours: Policy, queue_policy: str) -> tuple[object, object]:
    expected = TinyCluster(whole(5)).run(ours, jobs)
    policy = Fluxion(match_policy="low", queue_policy=queue_policy, queue_depth=1000)
    actual = on_machines(5).run(policy, jobs)
    return (expected.starts_s, expected.machines), (actual.starts_s, actual.machines)


@settings(deadline=None, max_examples=40)
@given(workloads(exact=False))
def test_fcfs_on_a_graph_has_the_schedule_of_fcfs(jobs: list[Job]) -> None:
    expected, actual = schedules(jobs, Fcfs(), "fcfs")

    assert actual == expected


@settings(deadline=None, max_examples=40)
@given(workloads(exact=False))
def test_easy_on_a_graph_has_the_schedule_of_easy(jobs: list[Job]) -> None:
    """Reservations are for particular machines, in Fluxion as in batsched, so the machines are equal too."""
    expected, actual = schedules(jobs, Easy(), "easy")

    assert actual == expected


@settings(deadline=None, max_examples=40)
@given(workloads(exact=True))
def test_conservative_on_a_graph_has_the_schedule_of_conservative_if_estimates_are_exact(jobs: list[Job]) -> None:
    """If jobs end early, ours moves one slot after the other, and Fluxion recomputes all of them."""
    expected, actual = schedules(jobs, Conservative(), "conservative")

    assert actual == expected


def test_the_queue_depth_limits_the_jobs_considered() -> None:
    jobs = [a_job("first", 3, 10), a_job("large", 4, 10, submit_s=1), a_job("small", 1, 5, submit_s=2)]

    shallow = on_machines(4).run(Fluxion(queue_depth=1), jobs)
    deep = on_machines(4).run(Fluxion(), jobs)

    assert shallow.starts_s["small"] > deep.starts_s["small"] == 2


def test_pods_pack_by_cores_memory_and_gpus() -> None:
    machines = [a_machine(n, **{CPU: 4000, MEMORY: 8 * GIB, GPU: 2}) for n in range(2)]
    with_gpus = a_job("gpus", 3, 10, requests=((CPU, 1000), (MEMORY, 2 * GIB), (GPU, 1)))
    large = a_job("large", 1, 10, requests=((CPU, 2500), (MEMORY, GIB)))
    more = a_job("more", 2, 10, requests=((CPU, 1000), (GPU, 1)))

    cluster = TinyCluster(NodeRoom.whole(machines), machines).run(Fluxion(match_policy="low"), [with_gpus, large, more])

    assert cluster.machines["gpus"] == (0, 0, 1)
    assert cluster.machines["large"] == (1,)
    assert cluster.starts_s == {"gpus": 0, "large": 0, "more": 10}


def test_a_pod_stays_within_one_socket() -> None:
    machine = Machine(0, "m0", {CPU: 8000, "pods": 110}, labels={"batkube.io/sockets": "2"})
    jobs = [a_job(name, 1, 10, requests=((CPU, 3000),)) for name in "abc"]

    cluster = TinyCluster(NodeRoom.whole([machine]), [machine]).run(Fluxion(), jobs)

    assert cluster.starts_s == {"a": 0, "b": 0, "c": 10}


def test_a_graph_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(jgf(nodes=2, cores=2)), encoding="utf-8")
    machines = [a_machine(n, **{CPU: 4000}) for n in range(2)]
    jobs = [a_job(name, 1, 10, requests=((CPU, 2000),)) for name in "abc"]

    cluster = TinyCluster(NodeRoom.whole(machines), machines).run(Fluxion(match_policy="low", graph=str(path)), jobs)

    assert cluster.starts_s == {"a": 0, "b": 0, "c": 10}
    assert cluster.machines["b"] == (1,)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"match_policy": "tallest"}, "tallest"),
        ({"queue_policy": "lifo"}, "fcfs, easy, hybrid, conservative"),
        ({"queue_depth": "0"}, "at least 1"),
        ({"queue_policy": "fcfs", "reservation_depth": "3"}, "fcfs has no reservations"),
        ({"graph": "x", "graph_format": "dot"}, "jgf"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, str], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load_policy("fluxion", arguments)
