"""Units that compete for nodes: executions of jobs, and single pods."""

from __future__ import annotations

import pytest

from batkube.kernel.instants import Instant
from batkube.outputs.explain.units import NEVER, Unit, holders_by_name, node_names, units_of
from batkube.outputs.playback.model import RecordedPod
from batkube.outputs.playback.playback import Playback


def a_pod(number: int, bound: int | None, node: str = "", created: int = 0) -> RecordedPod:
    at = None if bound is None else Instant(bound)
    return RecordedPod(number, f"p{number}", None, node, Instant(created), at, at, None, "Running", 0, "", "", {})


def a_unit(*pods: RecordedPod, size: int = 2, queued: int = 0, number: int = 0, **more: object) -> Unit:
    return Unit("w!1", number, Instant(queued), pods, size, **more)  # type: ignore[arg-type]


def test_the_wait_ends_when_the_last_pod_has_a_node() -> None:
    unit = a_unit(a_pod(0, 5), a_pod(1, 9))

    assert (unit.first_bound, unit.bound, unit.wait_end) == (5, 9, 9)


@pytest.mark.parametrize(("ended", "wait_end"), [(Instant(20), 20), (None, NEVER)])
def test_the_wait_of_a_unit_that_was_never_placed_ends_with_it(ended: Instant | None, wait_end: int) -> None:
    unit = a_unit(a_pod(0, 5), a_pod(1, None), ended=ended)

    assert (unit.bound, unit.wait_end) == (None, wait_end)


def test_a_unit_some_of_whose_pods_were_not_created_is_not_placed() -> None:
    assert a_unit(a_pod(0, 5), size=2).bound is None


def test_units_queued_at_one_instant_are_in_the_order_of_their_numbers() -> None:
    first, second = a_unit(number=1), a_unit(number=2)

    assert second.is_queued_after(first)
    assert not first.is_queued_after(second)


def test_the_order_of_requeued_units_at_one_instant_is_unknown() -> None:
    first, again = a_unit(number=1), a_unit(number=2, execution=1)

    assert not again.is_queued_after(first)
    assert not first.is_queued_after(again)
    assert a_unit(queued=1, execution=1).is_queued_after(first)


def test_every_execution_of_a_run_is_a_unit_with_its_own_pods(shared_nodes: Playback) -> None:
    units = units_of(shared_nodes)

    assert len(units) == sum(len(job.executions) for job in shared_nodes.jobs)
    assert len(units) > len(shared_nodes.jobs), "the failed node stops no job"
    assert sorted(pod.number for unit in units for pod in unit.pods) == [pod.number for pod in shared_nodes.pods]
    for unit in units:
        assert all(unit.queued <= pod.created for pod in unit.pods)


def test_pods_are_grouped_by_job(shared_nodes: Playback) -> None:
    job = next(job for job in shared_nodes.jobs if len(job.pods) > 1)
    pods = [shared_nodes.pods[number] for number in job.pods]

    assert holders_by_name(shared_nodes, pods) == {job.key: pods}


def test_nodes_are_listed_once() -> None:
    assert node_names([a_pod(0, 1, "b"), a_pod(1, 1, "a"), a_pod(2, 1, "b"), a_pod(3, None)]) == ("b", "a")
