"""Explain a node: what ran on it and when, how much of it was used, and when it was not ready."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from batkube.kernel.instants import Duration, Instant
from batkube.kernel.quantities import MACHINE, PODS
from batkube.outputs.explain.model import NodeExplanation, StatusPeriod, Stay, Use
from batkube.outputs.explain.units import owner_name
from batkube.outputs.playback.model import NodeStatus, RecordedNode, RecordedPod
from batkube.outputs.playback.playback import Playback

_Change = tuple[Instant, int, Mapping[str, int]]


def explain_node(playback: Playback, node: RecordedNode) -> NodeExplanation:
    """Return the explanation of a node."""
    pods = [pod for pod in playback.pods if pod.node == node.name and pod.bound is not None]
    existed = [(max(period.begin, Instant(0)), period.end) for period in node.periods]
    lifetime = sum((playback.end if end is None else end) - begin for begin, end in existed)
    integrals, peaks, busy = _use_over_time(playback, pods)
    uses = tuple(
        Use(resource, capacity, integrals[resource] / (capacity * lifetime), peaks[resource])
        for resource, capacity in node.capacity.items()
        if capacity and lifetime and _is_shown(resource, playback.main_resource, peaks[resource])
    )
    return NodeExplanation(
        node.name,
        node.machine,
        node.capacity,
        node.zone,
        node.rack,
        node.pool,
        tuple(existed),
        uses,
        Duration(max(0, lifetime - busy)),
        tuple(_statuses(playback, node)),
        tuple(_stays(playback, pods)),
    )


def _is_shown(resource: str, main_resource: str, peak: int) -> bool:
    """Return whether the use of a resource is informative. With whole machines, only that of the machine itself is."""
    return resource == main_resource or (peak > 0 and main_resource != MACHINE)


def _use_over_time(playback: Playback, pods: Sequence[RecordedPod]) -> tuple[Mapping[str, int], Mapping[str, int], int]:
    """Return the integral and the peak of the use of each resource, and how long any pod was on the node."""
    changes: list[_Change] = []
    for pod in pods:
        assert pod.bound is not None, "selected above"
        amounts: Mapping[str, int] = {**pod.requests, PODS: 1}
        changes.append((pod.bound, 1, amounts))
        changes.append((playback.end if pod.ended is None else pod.ended, -1, amounts))
    # Resources are released before they are used again.
    changes.sort(key=lambda change: change[:2])
    used: defaultdict[str, int] = defaultdict(int)
    integrals: defaultdict[str, int] = defaultdict(int)
    peaks: defaultdict[str, int] = defaultdict(int)
    busy = 0
    for (at, sign, amounts), following in itertools.zip_longest(changes, changes[1:]):
        for resource, amount in amounts.items():
            used[resource] += sign * amount
        length = 0 if following is None else following[0] - at
        busy += length if used[PODS] > 0 else 0
        for resource, amount in used.items():
            integrals[resource] += amount * length
            if length:
                peaks[resource] = max(peaks[resource], amount)
    return integrals, peaks, busy


def _statuses(playback: Playback, node: RecordedNode) -> Iterator[StatusPeriod]:
    """Yield the periods in which the node was not ready."""
    for change, following in itertools.zip_longest(node.statuses, node.statuses[1:]):
        if change.status is not NodeStatus.READY:
            yield StatusPeriod(change.status.value, change.at, None if following is None else following.at)


def _stays(playback: Playback, pods: Sequence[RecordedPod]) -> Iterator[Stay]:
    """Yield what ran on the node, in order of time; the pods of a job that ran together are one stay."""
    groups: defaultdict[tuple[Instant, Instant | None, str], int] = defaultdict(int)
    for pod in pods:
        if pod.bound is not None:
            groups[pod.bound, pod.ended, owner_name(playback, pod)] += 1
    for (since, until, name), count in sorted(groups.items(), key=lambda item: (item[0][0], item[0][2])):
        yield Stay(name, count, since, until)
