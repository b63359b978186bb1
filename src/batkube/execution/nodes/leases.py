"""Writes the Lease objects of nodes, for runs with a kube-controller-manager that reads them.

Kubernetes: staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go. Each node whose kubelet runs has a
Lease in namespace kube-node-lease, renewed every ten seconds since its registration or return. Nodes that registered at
the same instant renew in one batch.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from batkube.cluster.client import BulkClient
from batkube.cluster.mapping import NODE
from batkube.cluster.nodes.heartbeats import RENEW_INTERVAL
from batkube.cluster.store import ADDED, DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant, rfc3339_micro

LEASE, NAMESPACE = "leases.coordination.k8s.io", "kube-node-lease"
#: --node-lease-duration-seconds; a kubelet renews after a quarter of it.
_DURATION_S = 40


class NodeLeases:
    """Renews the Leases of nodes."""

    def __init__(self, world: World, client: BulkClient) -> None:
        self._store = world.store
        self._agenda = world.agenda
        self._clock = world.clock
        self._client = client
        #: Groups of nodes that renew together, by the instant of their first renewal. Each has one appointment.
        self._groups: dict[Instant, dict[str, None]] = {}
        world.store.subscribe(NODE, self._on_nodes_changed)
        world.heartbeats.subscribe(self._remove, self._add)

    def _on_nodes_changed(self, batch: Batch, now: Instant) -> None:
        for name in batch.keys:
            if batch.type is ADDED:
                # Programs start before the run does, and must find the Leases of the initial nodes.
                self._add(name, min(now, self._clock.now))
            elif batch.type is DELETED:
                self._remove(name, now)

    def _add(self, node: str, now: Instant) -> None:
        if now not in self._groups:
            self._groups[now] = {}
            self._book(now, now)
        self._groups[now][node] = None

    def _remove(self, node: str, now: Instant) -> None:
        for group in self._groups.values():
            group.pop(node, None)

    def _book(self, since: Instant, at: Instant) -> None:
        # After timeline events: a node that fails at this instant does not renew. A routine appointment does not keep
        # the run alive.
        self._agenda.book(at, Rank.START, functools.partial(self._renew_group, since), is_routine=True)

    def _renew_group(self, since: Instant, now: Instant) -> None:
        """Renew the Leases of a group, and book the next renewal."""
        if nodes := self._groups[since]:
            self._renew(nodes, now)
            self._book(since, Instant(now + RENEW_INTERVAL))
        else:
            del self._groups[since]

    def _renew(self, nodes: Iterable[str], now: Instant) -> None:
        time, renewed = rfc3339_micro(now), list[KubeObject]()
        for node in nodes:
            lease = self._store.get(LEASE, Key(f"{NAMESPACE}/{node}"))
            if lease is None:
                self._client.create(LEASE, self._new_lease(node, time), now)
            else:
                renewed.append({**lease, "spec": {**lease["spec"], "renewTime": time}})
        self._client.update_all(LEASE, renewed, now)

    def _new_lease(self, node: str, time: str) -> KubeObject:
        """Return a Lease as a kubelet creates it, owned by its Node."""
        uid = self._store.objects(NODE, [Key(node)])[0]["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node, "namespace": NAMESPACE, "ownerReferences": [owner]},
            "spec": {"holderIdentity": node, "leaseDurationSeconds": _DURATION_S, "renewTime": time},
        }
