"""EASY and conservative backfilling. Published schedules are compared in the end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policies.conftest import TinyCluster, a_job, nodes, whole

from batkube.kernel.instants import Instant
from batkube.kernel.intervals import lowest
from batkube.policies.conservative import Conservative
from batkube.policies.easy import Easy
from batkube.policies.fcfs import Fcfs
from batkube.policies.interface import Decision, Policy, Start, View
from batkube.policies.machine_room import MachinePlacement, MachineRoom
from batkube.policies.node_room import NodeRoom
from batkube.workloads.model import Job

MACHINES = 8


@st.composite
def workloads(draw: st.DrawFn) -> list[Job]:
    """A few jobs that overload eight machines, many of them shorter than their estimate."""
    jobs = []
    for number in range(draw(st.integers(1, 14))):
        walltime_s = draw(st.integers(1, 12))
        jobs.append(
            a_job(
                str(number),
                draw(st.integers(1, MACHINES)),
                draw(st.integers(1, walltime_s)),
                submit_s=draw(st.integers(0, 12)),
                walltime_s=walltime_s,
                requests=(("cpu", 1000),),
            )
        )
    return sorted(jobs, key=lambda job: job.submit)


def schedule(cluster: TinyCluster) -> dict[str, tuple[float, tuple[int, ...]]]:
    return {name: (start_s, cluster.machines[name]) for name, start_s in cluster.starts_s.items()}


@pytest.mark.parametrize("policy", [Easy, Conservative])
def test_a_short_job_is_backfilled_that_waits_under_fcfs(policy: type[Policy]) -> None:
    jobs = [a_job("first", 3, 10), a_job("head", 4, 10, submit_s=1), a_job("short", 1, 8, submit_s=2)]

    assert TinyCluster(whole(4)).run(Fcfs(), jobs).starts_s["short"] == 20
    assert TinyCluster(whole(4)).run(policy(), jobs).starts_s == {"first": 0, "head": 10, "short": 2}


@pytest.mark.parametrize("policy", [Easy, Conservative])
def test_a_job_that_would_delay_the_head_is_not_backfilled(policy: type[Policy]) -> None:
    jobs = [a_job("first", 3, 10), a_job("head", 4, 10, submit_s=1), a_job("long", 1, 9, submit_s=2)]

    cluster = TinyCluster(whole(4)).run(policy(), jobs)

    assert cluster.starts_s == {"first": 0, "head": 10, "long": 20}


def test_easy_backfills_a_long_job_beside_the_machines_reserved_for_the_head() -> None:
    jobs = [a_job("first", 2, 10), a_job("head", 3, 10, submit_s=1), a_job("long", 1, 50, submit_s=2)]

    cluster = TinyCluster(whole(4)).run(Easy(), jobs)

    assert schedule(cluster) == {"first": (0, (0, 1)), "long": (2, (3,)), "head": (10, (0, 1, 2))}


def test_the_reservation_of_easy_is_for_particular_machines_not_for_a_number() -> None:
    # At 10 the machines 0-2 and 5 are free, and the head is promised the lowest three, although any three would do.
    # The long job therefore may not use 2, the lowest one now, and gets 5.
    jobs = [
        a_job("a", 2, 10),
        a_job("hole", 1, 1),
        a_job("b", 2, 40),
        a_job("head", 3, 10, submit_s=1),
        a_job("long", 1, 50, submit_s=2),
    ]

    cluster = TinyCluster(whole(6)).run(Easy(), jobs)

    assert schedule(cluster)["long"] == (2, (5,))
    assert schedule(cluster)["head"] == (10, (0, 1, 2))


def test_easy_delays_a_job_that_is_not_the_head_where_conservative_does_not() -> None:
    jobs = [
        a_job("a", 70, 100),
        a_job("b", 80, 100, submit_s=1),
        a_job("c", 90, 100, submit_s=2),
        a_job("d", 20, 250, submit_s=50),
    ]

    easy = TinyCluster(whole(100)).run(Easy(), jobs)
    conservative = TinyCluster(whole(100)).run(Conservative(), jobs)

    assert easy.starts_s == {"a": 0, "b": 100, "d": 50, "c": 300}
    assert conservative.starts_s == {"a": 0, "b": 100, "c": 200, "d": 300}


def test_easy_uses_machines_of_a_job_that_ends_early_immediately() -> None:
    jobs = [a_job("first", 4, 3, walltime_s=100), a_job("head", 4, 10, submit_s=1), a_job("next", 1, 5, submit_s=1)]

    cluster = TinyCluster(whole(4)).run(Easy(), jobs)

    assert cluster.starts_s == {"first": 0, "head": 3, "next": 13}


@given(workloads())
def test_under_easy_the_reservation_of_the_head_is_kept(jobs: list[Job]) -> None:
    promises: dict[str, Instant] = {}

    class RecordingEasy(Easy):
        def decide(self, view: View) -> Iterator[Decision]:
            yield from super().decide(view)
            reservation = self._reservation
            if reservation is not None and reservation.head is view.head:
                name, shadow = reservation.head.name, reservation.shadow
                promises[name] = min(shadow, promises.get(name, shadow))

    cluster = TinyCluster(whole(MACHINES)).run(RecordingEasy(), jobs)

    assert cluster.starts_s.keys() == {job.name for job in jobs}
    for name, promised in promises.items():
        assert cluster.starts_s[name] <= promised / 1e9


class EasyFromScratch(Policy):
    """EASY without state: the reference for the jobs that `Easy` need not try again."""

    def decide(self, view: View) -> Iterator[Decision]:
        yield from Easy().decide(view)


@given(workloads(), st.booleans())
def test_trying_only_arrived_jobs_does_not_change_the_schedule_of_easy(jobs: list[Job], packs: bool) -> None:
    room: MachineRoom | NodeRoom = nodes(*[{"cpu": 2000}] * (MACHINES // 2)) if packs else whole(MACHINES)

    incremental = TinyCluster(room).run(Easy(), jobs)
    from_scratch = TinyCluster(room).run(EasyFromScratch(), jobs)

    assert schedule(incremental) == schedule(from_scratch)


class PlainConservative(Policy):
    """Conservative backfilling with a dictionary of (start, end, machines), in which every instant is tried."""

    def __init__(self) -> None:
        self.plan: dict[str, tuple[int, int, int]] = {}

    def decide(self, view: View) -> Iterator[Decision]:
        for job in view.ended:
            del self.plan[job.name]
        for job in list(view.queue if view.ended else view.arrived):
            self.plan.pop(job.name, None)
            length = view.estimate(job)
            for start in sorted({view.now, *(end for _, end, _ in self.plan.values() if end > view.now)}):
                free = (1 << MACHINES) - 1
                for other_start, other_end, machines in self.plan.values():
                    if other_start < start + length and start < other_end:
                        free &= ~machines
                if free.bit_count() >= job.size:
                    break
            machines = lowest(free, job.size)
            self.plan[job.name] = start, start + length, machines
            if start == view.now:
                yield Start(job, MachinePlacement(machines))


@settings(max_examples=200)
@given(workloads())
def test_conservative_gives_the_schedule_of_a_plain_search(jobs: list[Job]) -> None:
    cluster = TinyCluster(whole(MACHINES)).run(Conservative(), jobs)

    assert schedule(cluster) == schedule(TinyCluster(whole(MACHINES)).run(PlainConservative(), jobs))


def test_conservative_moves_a_planned_job_only_when_a_job_ended() -> None:
    # Compression in order can leave a job later than necessary: at 8 job c keeps its slot after d's, and d moves
    # afterwards. The arrival at 11 may use the gap. batsched does not move c first.
    jobs = [
        a_job("a", 4, 5, submit_s=3, walltime_s=11),
        a_job("b", 2, 10, submit_s=6),
        a_job("c", 4, 5, submit_s=6),
        a_job("d", 3, 9, submit_s=6),
        a_job("e", 2, 8, submit_s=7),
        a_job("f", 3, 2, submit_s=11),
    ]

    cluster = TinyCluster(whole(4)).run(Conservative(), jobs)

    assert cluster.starts_s == {"a": 3, "b": 8, "e": 8, "f": 18, "c": 20, "d": 25}


@given(workloads())
def test_under_conservative_no_job_is_later_than_first_planned(jobs: list[Job]) -> None:
    promises: dict[str, Instant] = {}

    class RecordingConservative(Conservative):
        def decide(self, view: View) -> Iterator[Decision]:
            yield from super().decide(view)
            for job in view.arrived:
                promises[job.name] = self._slots[job.key].start

    cluster = TinyCluster(whole(MACHINES)).run(RecordingConservative(), jobs)

    assert all(cluster.starts_s[name] <= promised / 1e9 for name, promised in promises.items())


def test_easy_uses_the_spare_capacity_beside_the_head_only_once() -> None:
    # At 10 the head will use 8 of 10 cpus: 2 are spare, although 4 are free now.
    jobs = [
        a_job("first", 1, 10, requests=(("cpu", 6000),)),
        a_job("head", 1, 10, submit_s=1, requests=(("cpu", 8000),)),
        a_job("long", 1, 50, submit_s=2, requests=(("cpu", 2000),)),
        a_job("long too", 1, 50, submit_s=2, requests=(("cpu", 2000),)),
        a_job("long after", 1, 50, submit_s=3, requests=(("cpu", 2000),)),
    ]

    cluster = TinyCluster(nodes({"cpu": 10_000})).run(Easy(), jobs)

    assert cluster.starts_s == {"first": 0, "long": 2, "head": 10, "long too": 20, "long after": 20}


@pytest.mark.parametrize("policy", [Easy, Conservative])
@given(jobs=workloads(), overrun_s=st.integers(1, 30))
def test_all_jobs_end_although_one_exceeds_its_estimate(policy: type[Policy], jobs: list[Job], overrun_s: int) -> None:
    overdue = a_job("overdue", 5, 4 + overrun_s, walltime_s=4)

    cluster = TinyCluster(whole(MACHINES), kills_at_walltime=False).run(policy(), [overdue, *jobs])

    assert cluster.ends_s.keys() == {"overdue", *(job.name for job in jobs)}


@pytest.mark.parametrize("policy", [Easy, Conservative])
@given(jobs=workloads())
def test_nodes_that_hold_one_pod_each_are_scheduled_like_whole_machines(policy: type[Policy], jobs: list[Job]) -> None:
    packing = TinyCluster(nodes(*[{"cpu": 1000}] * MACHINES)).run(policy(), jobs)

    assert schedule(packing) == schedule(TinyCluster(whole(MACHINES)).run(policy(), jobs))
