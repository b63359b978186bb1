"""How many pods of a given size fit into the free resources of a cluster, at each instant of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from batkube.kernel.instants import Instant
from batkube.kernel.quantities import PODS
from batkube.outputs.playback.deltas import Delta, DeltaKind
from batkube.outputs.playback.model import NodeStatus, RecordedNode
from batkube.outputs.playback.playback import Playback

_NODE_KINDS = (DeltaKind.NODE_ADDED, DeltaKind.NODE_REMOVED, DeltaKind.NODE_STATUS)
_POD_KINDS = (DeltaKind.POD_BOUND, DeltaKind.POD_ENDED)


def slots_on(node: RecordedNode, requests: Mapping[str, int], used: Mapping[str, int]) -> int:
    """Return how many pods with these requests fit on a node of which `used` is taken.

    Taints, affinities and other constraints are not in the outputs, and do not count.
    """
    wanted = {PODS: 1, **{resource: amount for resource, amount in requests.items() if amount > 0}}
    return max(0, min((node.capacity.get(name, 0) - used.get(name, 0)) // amount for name, amount in wanted.items()))


class FreeSlots(msgspec.Struct, frozen=True):
    """From an instant on: how many pods fit, and how many would fit if no pod ran on the ready nodes."""

    at: Instant
    fitting: int
    capacity: int


class SlotReplay:
    """Replays a run, and reports how many pods fit after each instant at which their number may have changed."""

    def __init__(self, playback: Playback, requests: Mapping[str, int]) -> None:
        self._playback = playback
        self._requests = requests
        self._fold = playback.fold()
        self._numbers = {node.name: node.number for node in playback.nodes}
        #: By number, the pods that fit on each node now.
        self._slots: dict[int, int] = {}
        self._dirty: set[int] = set()
        #: The pods that would fit on each node that accepts pods, if nothing ran on it.
        self._capacities: dict[int, int] = {}

    def between(self, begin: Instant, end: Instant) -> Iterator[FreeSlots]:
        """Yield the free slots at `begin`, and after each instant before `end` at which they may have changed."""
        pending: Instant | None = None
        for delta in self._playback.deltas:
            if delta.at >= end:
                break
            if delta.at > begin and pending != delta.at:
                if pending is None or self._dirty:
                    yield self._free_slots(begin if pending is None else pending)
                pending = delta.at
            self._fold.apply(delta)
            self._mark(delta)
        if pending is None or self._dirty:
            yield self._free_slots(begin if pending is None else pending)

    def _mark(self, delta: Delta) -> None:
        if delta.kind in _NODE_KINDS:
            self._dirty.add(delta.number)
        elif delta.kind in _POD_KINDS and delta.node in self._numbers:
            self._dirty.add(self._numbers[delta.node])

    def _free_slots(self, at: Instant) -> FreeSlots:
        for number in self._dirty:
            node = self._playback.nodes[number]
            if self._fold.statuses.get(number) is NodeStatus.READY:
                self._slots[number] = slots_on(node, self._requests, self._fold.node_state(number).used)
                if number not in self._capacities:
                    self._capacities[number] = slots_on(node, self._requests, {})
            else:
                self._slots.pop(number, None)
                self._capacities.pop(number, None)
        self._dirty.clear()
        return FreeSlots(at, sum(self._slots.values()), sum(self._capacities.values()))
