"""ClusterRoles that gather the rules of others: `admin`, `edit` and `view`, to which every kind adds its own.

Kubernetes: pkg/controller/clusterroleaggregation.
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.client import Client
from batkube.cluster.selectors import selector_of
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.work_queue import WorkQueue
from batkube.kernel.instants import Instant

CLUSTER_ROLE = "clusterroles.rbac.authorization.k8s.io"


class RoleAggregation:
    """Keeps the rules of aggregated roles up to date. Any role that changes may be part of any other."""

    def __init__(self, world: World, client: Client) -> None:
        self._store = world.store
        self._client = client
        self._queue = WorkQueue(world, self._reconcile)
        world.store.listen(CLUSTER_ROLE, self._hear)

    def _hear(self, batch: Batch, now: Instant) -> None:
        for key, role in self._store.all(CLUSTER_ROLE).items():
            if role.get("aggregationRule"):
                self._queue.add(key, now)

    def _reconcile(self, key: Key, now: Instant) -> None:
        role = self._store.get(CLUSTER_ROLE, key)
        if role is None or not role.get("aggregationRule"):
            return
        rules = self._gathered(key, role)
        if rules != (role.get("rules") or []):
            self._client.update(CLUSTER_ROLE, {**role, "rules": rules}, now)

    def _gathered(self, key: Key, role: KubeObject) -> list[dict[str, Any]]:
        """Return the rules of all roles that are selected, in the order of their names, each rule once."""
        rules: list[dict[str, Any]] = []
        others = [(name, other) for name, other in sorted(self._store.all(CLUSTER_ROLE).items()) if name != key]
        for wanted in role["aggregationRule"].get("clusterRoleSelectors") or ():
            selector = selector_of(wanted)
            for _, other in others:
                if selector.matches(other["metadata"].get("labels")):
                    rules += [rule for rule in other.get("rules") or () if rule not in rules]
        return rules
