"""How fast nodes that are lost may be emptied: zone by zone, and slower or not at all when too many are lost at once.

When most nodes of a zone are not heard of, it is more likely that the network is at fault than they; so their pods are
left alone, or, where the zone is large, evicted at a tenth of the pace. When a whole zone is lost, its pods are needed
elsewhere; but when all zones are, there is no elsewhere, and whoever asks is probably cut off himself.
Kubernetes: pkg/controller/nodelifecycle (handleDisruption, ComputeZoneState, ReducedQPSFunc) and its scheduler
(rate_limited_queue.go, SwapLimiter).
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.cluster.object_meta import has_condition, labels_of
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, Instant, seconds

#: kube-controller-manager's --node-eviction-rate and --secondary-node-eviction-rate: a node in ten seconds, or in 100.
_INTERVAL: Duration = seconds(10)
_SECONDARY_INTERVAL: Duration = seconds(100)
#: --unhealthy-zone-threshold, in hundredths; fewer than three lost nodes are never too many.
_UNHEALTHY_PERCENT = 55
_TOLERATED_FAILURES = 2
#: --large-cluster-size-threshold: in a zone of no more nodes nobody is evicted when too many are lost.
_LARGE_ZONE_SIZE = 50


class _Zone:
    """When the next node of a zone may be emptied: a bucket that holds one token (client-go: util/flowcontrol)."""

    def __init__(self, now: Instant) -> None:
        #: How long it takes for another token to come; None when none does.
        self.interval: Duration | None = _INTERVAL
        self.next_eviction_at = now

    def set_interval(self, pause: Duration | None, now: Instant) -> None:
        """Take another bucket: an empty one, if the old one was."""
        if pause == self.interval:
            return
        is_empty = self.interval is None or now < self.next_eviction_at
        self.interval = pause
        if pause is not None:
            self.next_eviction_at = Instant(now + pause) if is_empty else now


class EvictionRateLimiter:
    """Knows of every zone when its next node may get a taint that evicts pods."""

    def __init__(self, now: Instant) -> None:
        self._started_at = now
        self._zones: dict[str, _Zone] = {}
        #: Whether all nodes of all zones are lost, so that none is to have such a taint.
        self.is_fully_disrupted = False

    def update(self, nodes: Iterable[KubeObject], now: Instant) -> None:
        """Adapt the pace of each zone to how many of its nodes are ready."""
        ready: dict[str, list[bool]] = {}
        for node in nodes:
            ready.setdefault(zone_of(node), []).append(has_condition(node, "Ready"))
        self.is_fully_disrupted = not any(is_ready for some in ready.values() for is_ready in some)
        for name, some in ready.items():
            zone = self._zones.setdefault(name, _Zone(self._started_at))
            zone.set_interval(None if self.is_fully_disrupted else _interval_for(some), now)

    def next_eviction_at(self, node: KubeObject) -> Instant | None:
        """Return from when on the next node of this one's zone may be emptied; None when none may."""
        zone = self._zones[zone_of(node)]
        return None if zone.interval is None else zone.next_eviction_at

    def record_eviction(self, node: KubeObject, now: Instant) -> None:
        """A node gets a taint that evicts its pods."""
        zone = self._zones[zone_of(node)]
        if zone.interval is not None:
            zone.next_eviction_at = Instant(now + zone.interval)


def zone_of(node: KubeObject) -> str:
    """Return the zone of a node within its region; "" if it has neither (component-helpers: topology.GetZoneKey)."""
    labels = labels_of(node)
    region, zone = (labels.get(f"topology.kubernetes.io/{name}", "") for name in ("region", "zone"))
    return f"{region}:{zone}" if region or zone else ""


def _interval_for(ready: list[bool]) -> Duration | None:
    lost = ready.count(False)
    if lost == len(ready) or lost <= _TOLERATED_FAILURES or 100 * lost < _UNHEALTHY_PERCENT * len(ready):
        return _INTERVAL
    return _SECONDARY_INTERVAL if len(ready) > _LARGE_ZONE_SIZE else None
