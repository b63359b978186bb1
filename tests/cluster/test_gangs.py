from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batkube.cluster.gangs import Gang, Roster
from batkube.cluster.store import Key
from batkube.kernel.instants import Duration, Instant
from batkube.workloads.model import Delay, Job


def a_gang(name: str, size: int) -> Gang:
    job = Job(workload="w0", name=name, submit=Instant(0), size=size, profile=Delay(name="d", duration=Duration(1)))
    return Gang(job, [Key(f"default/{name}-{rank}") for rank in range(size)], (), Instant(0), evictions=0)


def test_the_pods_of_one_whole_gang_are_found_at_once() -> None:
    roster, gang = Roster(), a_gang("a", 3)
    roster.add(gang)

    [found] = roster.gangs(gang.keys)

    assert (found.gang, list(found.positions), list(found.ranks)) == (gang, [0, 1, 2], [0, 1, 2])


@given(st.lists(st.sampled_from(["a-0", "a-1", "b-0", "b-1", "b-2", "stranger"]), unique=True))
def test_any_mixture_of_pods_is_told_apart_and_strangers_are_left_out(names: list[str]) -> None:
    roster = Roster()
    gangs = {"a": a_gang("a", 2), "b": a_gang("b", 3)}
    for gang in gangs.values():
        roster.add(gang)
    keys = [Key(f"default/{name}") for name in names]

    found = {
        keys[position]: (entry.gang.job.name, rank)
        for entry in roster.gangs(keys)
        for position, rank in zip(entry.positions, entry.ranks, strict=True)
    }

    assert found == {Key(f"default/{name}"): (name[0], int(name[-1])) for name in names if name != "stranger"}


def test_a_gang_that_was_removed_is_not_found() -> None:
    roster, gang = Roster(), a_gang("a", 2)
    roster.add(gang)

    roster.remove(gang)

    assert list(roster.gangs(gang.keys)) == []
