"""Node heartbeats, computed instead of simulated.

A kubelet renews its lease every ten seconds (Kubernetes: pkg/kubelet/kubelet.go, nodeLeaseRenewIntervalFraction of
40 s). For a thousand nodes and a month that would be a quarter of a billion writes without a reader. So the time of the
latest renewal is computed: one every ten seconds since the node's registration, until the node fails. A run with a
kube-controller-manager, which reads Lease objects, writes them (`execution.nodes.leases`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from batkube.cluster.store import ADDED, DELETED, Batch, Store
from batkube.kernel.instants import Duration, Instant, seconds

RENEW_INTERVAL: Duration = seconds(10)

NodeListener = Callable[[str, Instant], None]
"""Called with the name of a node."""


class Heartbeats:
    """Records which nodes send heartbeats and which have stopped."""

    def __init__(self, store: Store) -> None:
        #: When each node began to renew its lease.
        self._since: dict[str, Instant] = {}
        self._silent: dict[str, Instant] = {}
        self._on_silence: list[NodeListener] = []
        self._on_return: list[NodeListener] = []
        store.subscribe("nodes", self._on_nodes_changed)

    @property
    def silent(self) -> Mapping[str, Instant]:
        """The nodes in the store without heartbeats, each with the instant at which they stopped."""
        return self._silent

    def subscribe(self, on_silence: NodeListener | None = None, on_return: NodeListener | None = None) -> None:
        """Call these when the heartbeats of a node stop and resume, in order of subscription."""
        if on_silence is not None:
            self._on_silence.append(on_silence)
        if on_return is not None:
            self._on_return.append(on_return)

    def last_renewal(self, node: str) -> Instant:
        """Return when a silent node last renewed its lease, strictly before it failed."""
        since, silent = self._since[node], self._silent[node]
        return Instant(since + max(0, (silent - 1 - since) // RENEW_INTERVAL) * RENEW_INTERVAL)

    def stop(self, node: str, now: Instant) -> None:
        """Stop the heartbeats of a node that fails, and notify subscribers; its pods' processes are gone."""
        if node in self._since and node not in self._silent:
            self._silent[node] = now
            for listener in self._on_silence:
                listener(node, now)

    def resume(self, node: str, now: Instant) -> None:
        """Resume the heartbeats of a node that is back, and notify subscribers."""
        if self._silent.pop(node, None) is not None:
            self._since[node] = now
            for listener in self._on_return:
                listener(node, now)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is ADDED:
            self._since.update(dict.fromkeys(batch.keys, now))
        elif batch.type is DELETED:
            for name in batch.keys:
                self._since.pop(name, None)
                self._silent.pop(name, None)
