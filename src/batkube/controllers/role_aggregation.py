"""Aggregated ClusterRoles such as `admin`, `edit` and `view`, which contain the rules of the roles they select.

Kubernetes: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go.
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.selectors import selector_of
from batkube.cluster.store import Batch, Key, KubeObject
from batkube.controllers.framework.controller import Controller
from batkube.kernel.instants import Instant

CLUSTER_ROLE = "clusterroles.rbac.authorization.k8s.io"


class ClusterRoleAggregationController(Controller):
    """Updates the rules of aggregated roles."""

    storage = CLUSTER_ROLE

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue every aggregated role, because it may select a changed role."""
        for key, role in self.store.all(CLUSTER_ROLE).items():
            if role.get("aggregationRule"):
                self.queue.add(key, now)

    def reconcile(self, key: Key, role: KubeObject, now: Instant) -> None:
        """Update the rules of an aggregated role."""
        if role.get("aggregationRule") and (rules := self._aggregated_rules(key, role)) != (role.get("rules") or []):
            self.client.update(CLUSTER_ROLE, {**role, "rules": rules}, now)

    def _aggregated_rules(self, key: Key, role: KubeObject) -> list[dict[str, Any]]:
        """Return the rules of the selected roles, ordered by role name and without duplicates."""
        rules: list[dict[str, Any]] = []
        others = [(name, other) for name, other in sorted(self.store.all(CLUSTER_ROLE).items()) if name != key]
        for label_selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
            selector = selector_of(label_selector)
            for _, other in others:
                if selector.matches(other["metadata"].get("labels")):
                    rules += [rule for rule in other.get("rules") or () if rule not in rules]
        return rules
