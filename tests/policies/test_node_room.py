"""Room by requests."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policies.conftest import a_job, nodes

from batkube.policies.machine_room import MachinePlacement
from batkube.policies.node_room import NodePlacement, NodeRoom
from batkube.policies.rooms import Choice
from batkube.workloads.model import Job

GPU = "nvidia.com/gpu"
capacities = st.fixed_dictionaries(
    {"cpu": st.integers(0, 8), "memory": st.integers(0, 8), "pods": st.integers(0, 5)},
    optional={GPU: st.integers(0, 3)},
)
clusters = st.lists(capacities, min_size=1, max_size=5)
jobs = st.builds(
    lambda size, requests: a_job("j", size, 1, requests=tuple(sorted(requests.items()))),
    st.integers(1, 6),
    st.dictionaries(st.sampled_from(["cpu", "memory", GPU, "unheard-of"]), st.integers(0, 4)),
)
choices = st.sampled_from([*Choice, "random"])


def chooser(choice: Choice | str) -> Choice | random.Random:
    return choice if isinstance(choice, Choice) else random.Random(7)


class PodByPodSearch:
    """A reference implementation with dictionaries, one pod at a time."""

    def __init__(self, capacities: list[dict[str, int]]) -> None:
        self.capacities = capacities
        self.free = [dict(capacity) for capacity in capacities]

    def fits(self, node: int, job: Job) -> bool:
        requests = {**dict(job.requests), "pods": 1}
        return all(self.free[node].get(resource, 0) >= amount for resource, amount in requests.items())

    def take(self, node: int, job: Job) -> None:
        for resource, amount in {**dict(job.requests), "pods": 1}.items():
            if amount:
                self.free[node][resource] -= amount

    def left_over(self, node: int, job: Job) -> float:
        requests = {resource: amount for resource, amount in job.requests if amount} or {"pods": 1}
        return max((self.free[node][r] - amount) / self.capacities[node][r] for r, amount in requests.items())

    def fit(self, job: Job, choice: Choice) -> tuple[int, ...] | None:
        nodes = []
        for _ in range(job.size):
            fitting = [node for node in range(len(self.free)) if self.fits(node, job)]
            if not fitting:
                return None
            if choice is Choice.PACK:
                node = min(fitting, key=lambda node: self.left_over(node, job))
            elif choice is Choice.SPREAD:
                node = max(fitting, key=lambda node: self.left_over(node, job))
            else:
                node = fitting[0]
            self.take(node, job)
            nodes.append(node)
        return tuple(nodes)


@given(clusters, st.lists(jobs, max_size=4), st.sampled_from(Choice))
def test_placements_equal_those_of_a_pod_by_pod_search(
    cluster: list[dict[str, int]], arrivals: list[Job], choice: Choice
) -> None:
    room, reference = nodes(*cluster), PodByPodSearch(cluster)

    for job in arrivals:
        before = [dict(free) for free in reference.free]
        expected = reference.fit(job, choice)
        placement = room.fit(job, choice)

        assert (placement and placement.machine_ids) == expected
        assert room.holds(job) == (expected is not None)
        if placement is None:
            reference.free = before
        else:
            room = room - placement
    for name, row in room.nodes.row_of.items():
        assert room.free[row].tolist() == [free.get(name, 0) for free in reference.free]


@given(clusters, jobs, choices)
def test_taking_and_releasing_a_placement_restores_the_room(
    cluster: list[dict[str, int]], job: Job, choice: Choice | str
) -> None:
    room = nodes(*cluster)
    placement = room.fit(job, chooser(choice))

    if placement is not None:
        left = room - placement
        assert left.free.min() >= 0
        assert left + placement == room
        assert left != room


@given(clusters, st.lists(jobs, min_size=2, max_size=2), jobs)
def test_the_intersection_of_rooms_is_commutative_idempotent_and_a_lower_bound(
    cluster: list[dict[str, int]], running: list[Job], job: Job
) -> None:
    one, other = (remaining(nodes(*cluster), job) for job in running)

    both = one & other

    assert both == other & one
    assert both & both == both
    placement = both.fit(job)
    if placement is not None:
        assert (one - placement) & (other - placement) == both - placement


def remaining(room: NodeRoom, job: Job) -> NodeRoom:
    placement = room.fit(job)
    return room if placement is None else room - placement


def test_several_pods_of_a_job_share_a_node() -> None:
    room = nodes({"cpu": 2000}, {"cpu": 4000})

    placement = room.fit(a_job("j", 3, 1, requests=(("cpu", 1000),)))

    assert placement is not None
    assert placement.machine_ids == (0, 0, 1)
    assert placement.mask == 0b11


def test_each_pod_takes_a_pod_slot() -> None:
    room = nodes({"pods": 2}, {"pods": 1})

    assert room.fit(a_job("j", 4, 1)) is None
    placement = room.fit(a_job("j", 3, 1))
    assert placement is not None
    assert placement.machine_ids == (0, 0, 1)
    assert (room - placement).is_full


def test_pack_chooses_the_used_node_and_spread_the_empty_one() -> None:
    room = nodes({"cpu": 4000}, {"cpu": 4000}) - NodePlacement((1,), (("cpu", 1000),))
    job = a_job("j", 1, 1, requests=(("cpu", 1000),))

    packed, spread = room.fit(job, Choice.PACK), room.fit(job, Choice.SPREAD)

    assert packed is not None
    assert spread is not None
    assert packed.machine_ids == (1,)
    assert spread.machine_ids == (0,)


def test_spread_uses_different_nodes_for_the_pods_of_a_job() -> None:
    placement = nodes(*[{"cpu": 4000}] * 3).fit(a_job("j", 3, 1, requests=(("cpu", 500),)), Choice.SPREAD)

    assert placement is not None
    assert placement.machine_ids == (0, 1, 2)


def test_a_random_choice_uses_all_fitting_nodes_and_no_others() -> None:
    room = nodes({"cpu": 4000}, {"cpu": 0}, {"cpu": 4000})
    rng = random.Random(3)

    drawn = [room.fit(a_job("j", 1, 1, requests=(("cpu", 1),)), rng) for _ in range(40)]

    assert {placement.machine_ids for placement in drawn if placement} == {(0,), (2,)}


def test_taking_more_than_is_free_is_rejected() -> None:
    room = nodes({"cpu": 1000}, {"cpu": 1000})

    with pytest.raises(ValueError, match="lack free"):
        room - NodePlacement((0,), (("cpu", 1001),))
    with pytest.raises(ValueError, match="lack free"):
        room - NodePlacement((1, 1), (("cpu", 600),))
    with pytest.raises(ValueError, match="no node has"):
        room - NodePlacement((0,), ((GPU, 1),))


def test_releasing_more_than_the_capacity_is_rejected() -> None:
    with pytest.raises(ValueError, match="than their capacity"):
        nodes({"cpu": 1000}) + NodePlacement((0,), (("cpu", 1),))


def test_a_placement_of_whole_machines_is_rejected() -> None:
    with pytest.raises(TypeError, match="has no requests"):
        nodes({"cpu": 1000}) - MachinePlacement(1)


@given(clusters, jobs, st.sets(st.integers(-2, 7)), choices)
def test_a_room_of_chosen_nodes_gives_only_these(
    capacities: list[dict[str, int]], job: Job, chosen: set[int], choice: Choice | str
) -> None:
    room = nodes(*capacities)
    placement = room.only(chosen).fit(job, chooser(choice))
    part = nodes(*(capacity for number, capacity in enumerate(capacities) if number in chosen))

    assert (placement is not None) == (bool(chosen & {*range(len(capacities))}) and part.holds(job))
    if placement is not None:
        assert set(placement.machine_ids) <= chosen
        assert room - placement + placement == room
    assert room == nodes(*capacities), "rooms are values"
