"""ClusterRoles that gather the rules of others: `admin`, `edit` and `view`, to which every kind adds its own.

Kubernetes: pkg/controller/clusterroleaggregation.
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.selectors import selector_of
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.controllers.framework.controller import Controller
from batkube.kernel.instants import Instant

CLUSTER_ROLE = "clusterroles.rbac.authorization.k8s.io"


class ClusterRoleAggregationController(Controller):
    """Keeps the rules of aggregated roles up to date."""

    storage = CLUSTER_ROLE

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue every role that gathers: any role that changes may be part of any other."""
        for key, role in self.store.all(CLUSTER_ROLE).items():
            if role.get("aggregationRule"):
                self.queue.add(key, now)

    def reconcile(self, key: Key, role: KubeObject, now: Instant) -> None:
        """Gather the rules of a role that is made of others'."""
        if role.get("aggregationRule") and (rules := self._aggregated_rules(key, role)) != (role.get("rules") or []):
            self.client.update(CLUSTER_ROLE, {**role, "rules": rules}, now)

    def _aggregated_rules(self, key: Key, role: KubeObject) -> list[dict[str, Any]]:
        """Return the rules of all roles that are selected, in the order of their names, each rule once."""
        rules: list[dict[str, Any]] = []
        others = [(name, other) for name, other in sorted(self.store.all(CLUSTER_ROLE).items()) if name != key]
        for wanted in role["aggregationRule"].get("clusterRoleSelectors") or ():
            selector = selector_of(wanted)
            for _, other in others:
                if selector.matches(other["metadata"].get("labels")):
                    rules += [rule for rule in other.get("rules") or () if rule not in rules]
        return rules
