"""How many pods fit into free resources at each instant of a run."""

from __future__ import annotations

import pytest

from batkube.kernel.instants import Instant
from batkube.kernel.quantities import CPU, MEMORY, PODS
from batkube.outputs.explain.free_slots import SlotReplay, slots_on
from batkube.outputs.playback.model import NodePeriod, NodeStatus, RecordedNode
from batkube.outputs.playback.playback import Playback

NODE = RecordedNode(0, "n", 0, {CPU: 4000, MEMORY: 8, PODS: 3}, "", "", "", (NodePeriod(Instant(0)),))


@pytest.mark.parametrize(
    ("requests", "used", "slots"),
    [
        ({CPU: 1000}, {}, 3),
        ({CPU: 2000}, {}, 2),
        ({CPU: 1000, MEMORY: 5}, {}, 1),
        ({CPU: 1000}, {CPU: 3500}, 0),
        ({CPU: 1000}, {CPU: 5000}, 0),
        ({"nvidia.com/gpu": 1}, {}, 0),
        ({}, {PODS: 1}, 2),
    ],
    ids=["pods", "cpu", "memory", "used", "overcommitted", "missing resource", "no requests"],
)
def test_the_scarcest_resource_limits_the_slots(requests: dict[str, int], used: dict[str, int], slots: int) -> None:
    assert slots_on(NODE, requests, used) == slots


def slots_at(run: Playback, requests: dict[str, int], at: Instant) -> tuple[int, int]:
    """Return the pods that fit on ready nodes, and those that would fit if nothing ran there, from the state alone."""
    nodes = {node.name: node for node in run.nodes}
    ready = [
        (nodes[name], state.used) for name, state in run.state_at(at).nodes.items() if state.status is NodeStatus.READY
    ]
    return sum(slots_on(node, requests, used) for node, used in ready), sum(
        slots_on(node, requests, {}) for node, _ in ready
    )


@pytest.mark.parametrize("requests", [{CPU: 1000}, {CPU: 1500, MEMORY: 4 * 2**30}], ids=str)
def test_the_slots_of_a_replay_are_those_of_the_state_at_each_instant(
    requests: dict[str, int], shared_nodes: Playback
) -> None:
    begin, end = Instant(150 * 10**9), Instant(900 * 10**9)

    replayed = list(SlotReplay(shared_nodes, requests).between(begin, end))

    assert replayed[0].at == begin
    assert len({slots.fitting for slots in replayed}) > 5
    assert len({slots.capacity for slots in replayed}) > 2
    for slots in replayed:
        assert (slots.fitting, slots.capacity) == slots_at(shared_nodes, requests, slots.at)


def test_no_change_of_the_slots_is_missed(shared_nodes: Playback) -> None:
    requests = {CPU: 1000}
    replayed = {
        slots.at: slots.fitting for slots in SlotReplay(shared_nodes, requests).between(Instant(0), shared_nodes.end)
    }
    current = replayed[Instant(0)]

    for at in sorted({delta.at for delta in shared_nodes.deltas if 0 < delta.at < shared_nodes.end}):
        current = replayed.get(at, current)
        assert current == slots_at(shared_nodes, requests, at)[0]
