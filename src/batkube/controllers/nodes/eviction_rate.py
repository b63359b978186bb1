"""Rate limit for evicting pods from failed nodes: per zone, lower or zero if too many nodes fail at once.

If most nodes of a zone do not respond, a network failure is more likely than many node failures. Their pods stay or, in
a large zone, are evicted at a tenth of the rate. If a whole zone fails, its pods are evicted at the normal rate. If all
zones fail, nothing is evicted: probably the control plane itself is disconnected.
Kubernetes: pkg/controller/nodelifecycle/node_lifecycle_controller.go (handleDisruption, ComputeZoneState,
ReducedQPSFunc) and scheduler/rate_limited_queue.go (SwapLimiter).
"""

from __future__ import annotations

from collections.abc import Iterable

from batkube.cluster.object_meta import has_condition, labels_of
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, Instant, seconds

#: --node-eviction-rate and --secondary-node-eviction-rate of kube-controller-manager: one node per 10 s or per 100 s.
_INTERVAL: Duration = seconds(10)
_SECONDARY_INTERVAL: Duration = seconds(100)
#: --unhealthy-zone-threshold, in percent; up to two failed nodes never count as too many.
_UNHEALTHY_PERCENT = 55
_TOLERATED_FAILURES = 2
#: --large-cluster-size-threshold: with too many failures in a zone up to this size, evictions stop.
_LARGE_ZONE_SIZE = 50


class _Zone:
    """Token bucket of a zone with a capacity of one token (client-go: util/flowcontrol/throttle.go)."""

    def __init__(self, now: Instant) -> None:
        #: Time between evictions; None to stop them.
        self.interval: Duration | None = _INTERVAL
        self.next_eviction_at = now

    def set_interval(self, interval: Duration | None, now: Instant) -> None:
        """Replace the bucket by one with another rate; an empty bucket stays empty (Kubernetes: SwapLimiter)."""
        if interval == self.interval:
            return
        is_empty = self.interval is None or now < self.next_eviction_at
        self.interval = interval
        if interval is not None:
            self.next_eviction_at = Instant(now + interval) if is_empty else now


class EvictionRateLimiter:
    """Decides when the next node of each zone may get a NoExecute taint."""

    def __init__(self, now: Instant) -> None:
        self._started_at = now
        self._zones: dict[str, _Zone] = {}
        #: Whether all nodes of all zones have failed, which stops all evictions.
        self.is_fully_disrupted = False

    def update(self, nodes: Iterable[KubeObject], now: Instant) -> None:
        """Set the rate of each zone according to its share of ready nodes."""
        ready: dict[str, list[bool]] = {}
        for node in nodes:
            ready.setdefault(zone_of(node), []).append(has_condition(node, "Ready"))
        self.is_fully_disrupted = not any(is_ready for zone_nodes in ready.values() for is_ready in zone_nodes)
        for name, zone_nodes in ready.items():
            zone = self._zones.setdefault(name, _Zone(self._started_at))
            zone.set_interval(None if self.is_fully_disrupted else _interval_for(zone_nodes), now)

    def next_eviction_at(self, node: KubeObject) -> Instant | None:
        """Return when the next node of this zone may be evicted; None if none may."""
        zone = self._zones[zone_of(node)]
        return None if zone.interval is None else zone.next_eviction_at

    def record_eviction(self, node: KubeObject, now: Instant) -> None:
        """Record that a node got a NoExecute taint."""
        zone = self._zones[zone_of(node)]
        if zone.interval is not None:
            zone.next_eviction_at = Instant(now + zone.interval)


def zone_of(node: KubeObject) -> str:
    """Return region and zone of a node; "" if it has neither (Kubernetes: component-helpers, topology.GetZoneKey)."""
    labels = labels_of(node)
    region, zone = (labels.get(f"topology.kubernetes.io/{name}", "") for name in ("region", "zone"))
    return f"{region}:{zone}" if region or zone else ""


def _interval_for(ready: list[bool]) -> Duration | None:
    failed = ready.count(False)
    if failed == len(ready) or failed <= _TOLERATED_FAILURES or 100 * failed < _UNHEALTHY_PERCENT * len(ready):
        return _INTERVAL
    return _SECONDARY_INTERVAL if len(ready) > _LARGE_ZONE_SIZE else None
