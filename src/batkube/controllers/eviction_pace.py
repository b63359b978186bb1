"""How fast nodes that are lost may be emptied: zone by zone, and slower or not at all when too many are lost at once.

When most nodes of a zone are not heard of, it is more likely that the network is at fault than they; so their pods are
left alone, or, where the zone is large, evicted at a tenth of the pace. When a whole zone is lost, its pods are needed
elsewhere; but when all zones are, there is no elsewhere, and whoever asks is probably cut off himself.
Kubernetes: pkg/controller/nodelifecycle (handleDisruption, ComputeZoneState, ReducedQPSFunc) and its scheduler
(rate_limited_queue.go, SwapLimiter).
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.cluster.references import has_condition, labels_of
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, Instant, seconds

#: kube-controller-manager's --node-eviction-rate and --secondary-node-eviction-rate: a node in ten seconds, or in 100.
_PAUSE: Duration = seconds(10)
_LONG_PAUSE: Duration = seconds(100)
#: --unhealthy-zone-threshold, in hundredths; fewer than three lost nodes are never too many.
_TOO_MANY_PERCENT = 55
_FEW = 2
#: --large-cluster-size-threshold: in a zone of no more nodes nobody is evicted when too many are lost.
_LARGE = 50


class _Zone:
    """When the next node of a zone may be emptied: a bucket that holds one token (client-go: util/flowcontrol)."""

    def __init__(self, now: Instant) -> None:
        #: How long it takes for another token to come; None when none does.
        self.pause: Duration | None = _PAUSE
        self.next = now

    def change_pause(self, pause: Duration | None, now: Instant) -> None:
        """Take another bucket: an empty one, if the old one was."""
        if pause == self.pause:
            return
        is_empty = self.pause is None or now < self.next
        self.pause = pause
        if pause is not None:
            self.next = Instant(now + pause) if is_empty else now


class EvictionPace:
    """Knows of every zone when its next node may get a taint that evicts pods."""

    def __init__(self, now: Instant) -> None:
        self._began = now
        self._zones: dict[str, _Zone] = {}
        #: Whether all nodes of all zones are lost, so that none is to have such a taint.
        self.is_all_lost = False

    def look(self, nodes: Iterable[KubeObject], now: Instant) -> None:
        """Adapt the pace of each zone to how many of its nodes are ready."""
        ready: dict[str, list[bool]] = {}
        for node in nodes:
            ready.setdefault(zone_of(node), []).append(has_condition(node, "Ready"))
        self.is_all_lost = not any(is_ready for some in ready.values() for is_ready in some)
        for name, some in ready.items():
            zone = self._zones.setdefault(name, _Zone(self._began))
            zone.change_pause(None if self.is_all_lost else _pause_for(some), now)

    def next_turn(self, node: KubeObject) -> Instant | None:
        """Return from when on the next node of this one's zone may be emptied; None when none may."""
        zone = self._zones[zone_of(node)]
        return None if zone.pause is None else zone.next

    def take_turn(self, node: KubeObject, now: Instant) -> None:
        """A node gets a taint that evicts its pods."""
        zone = self._zones[zone_of(node)]
        if zone.pause is not None:
            zone.next = Instant(now + zone.pause)


def zone_of(node: KubeObject) -> str:
    """Return the zone of a node within its region; "" if it has neither (component-helpers: topology.GetZoneKey)."""
    labels = labels_of(node)
    region, zone = (labels.get(f"topology.kubernetes.io/{name}", "") for name in ("region", "zone"))
    return f"{region}:{zone}" if region or zone else ""


def _pause_for(ready: list[bool]) -> Duration | None:
    lost = ready.count(False)
    if lost == len(ready) or lost <= _FEW or 100 * lost < _TOO_MANY_PERCENT * len(ready):
        return _PAUSE
    return _LONG_PAUSE if len(ready) > _LARGE else None
