"""Groups of pods and the nodes whose resources they hold."""

from __future__ import annotations

from batkube.cluster.pods.pod_groups import PodGroup, without_none
from batkube.cluster.store import Key
from batkube.kernel.instants import Instant

KEYS = [Key(f"default/w-{rank}") for rank in range(3)]
ALL = range(3)


def group() -> PodGroup:
    return PodGroup(list(KEYS), (("cpu", 1000),))


def test_admitted_pods_hold_their_nodes_until_these_are_popped() -> None:
    pods = group()
    pods.record_admission([2, 0], ["b", "a"], Instant(5))

    assert (pods.nodes, pods.scheduled) == (["a", None, "b"], [Instant(5), None, Instant(5)])
    assert pods.live_ranks(ALL) == [0, 2]
    assert pods.pop_nodes([2]) == ["b"]
    assert (pods.is_live, pods.live_ranks(ALL)) == (True, [0])
    assert pods.pop_nodes([0]) == ["a"]
    assert not pods.is_live


def test_a_whole_group_is_handled_as_its_ranks_one_by_one() -> None:
    whole, single = group(), group()
    whole.record_admission(ALL, ["a", "b", "c"], Instant(7))
    single.record_admission(list(ALL), ["a", "b", "c"], Instant(7))

    assert (whole.nodes, whole.scheduled) == (single.nodes, single.scheduled)
    assert whole.keys_of(ALL) == single.keys_of(list(ALL)) == KEYS
    assert whole.live_ranks(ALL) is ALL
    assert whole.pop_nodes(ALL) == single.pop_nodes(list(ALL)) == ["a", "b", "c"]
    assert whole.nodes == single.nodes == [None] * 3


def test_a_released_pod_keeps_the_instant_of_its_admission() -> None:
    pods = group()
    pods.record_admission(ALL, ["a", "b", "c"], Instant(7))
    pods.pop_nodes(ALL)

    assert pods.scheduled == [Instant(7)] * 3


def test_keys_follow_the_order_of_the_ranks() -> None:
    assert group().keys_of([2, 1]) == [KEYS[2], KEYS[1]]


def test_values_without_none_are_the_same_sequence_if_there_is_none() -> None:
    nodes = ["a", "b"]

    assert without_none(nodes) is nodes
    assert without_none([None, "a", None]) == ["a"]
