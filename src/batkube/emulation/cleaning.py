"""What a run leaves in a cluster: nothing. Everything it creates carries its label, and is removed at the end."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from batkube.emulation.access import Access, RefusedByCluster
from batkube.emulation.manifests import LABEL_RUN, Style, collection_of, local_queue, priority_class
from batkube.emulation.waiting import wait_until
from batkube.kernel.errors import RunFailed

#: How long a new namespace may take to get its service account; without one, pods are refused.
_ACCOUNT_S = 15.0
#: How long the cluster may take to remove everything.
_GONE_S = 90.0
#: A sleeping container is not asked twice.
_GRACE_S = 1


def new_run_name() -> str:
    """Return a name that no other run has."""
    return secrets.token_hex(4)


class Ground:
    """The place in the cluster that a run is played in."""

    def __init__(
        self,
        access: Access,
        style: Style,
        namespace: str | None,
        priorities: Sequence[int],
        queues: Sequence[str] = (),
    ) -> None:
        """`queues` are those of Kueue that jobs wait in; a namespace of our own has none yet."""
        self._access = access
        self._queues = queues
        self._style = style
        self._is_own = namespace is None
        self._priorities = priorities
        self.namespace = namespace or f"batkube-{style.run}"

    def prepare(self) -> None:
        """Make the namespace, if it is to be our own, and the priority classes."""
        if self._is_own:
            metadata = {"name": self.namespace, "labels": {LABEL_RUN: self._style.run}}
            self._access.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            wait_until(self._has_account, _ACCOUNT_S)
            for queue in (local_queue(name, self._style) for name in self._queues):
                self._access.create(collection_of(queue, self.namespace), queue)
        for priority in self._priorities:
            self._access.create("/apis/scheduling.k8s.io/v1/priorityclasses", priority_class(priority, self._style))

    def _has_account(self) -> bool:
        try:
            return self._access.exists(f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default")
        except RefusedByCluster:
            return True  # we are not told, and the first pod will show

    def clear(self) -> None:
        """Remove everything that carries our label. Raises RunFailed when something stays."""
        selector = f"{LABEL_RUN}={self._style.run}"
        space = f"/namespaces/{self.namespace}"
        if self._style.dialect is not None:
            groups = f"/apis/{self._style.dialect.version}{space}/podgroups"
            self._access.delete(groups, labelSelector=selector)
        if self._style.kind.is_job:
            self._access.delete(f"/apis/batch/v1{space}/jobs", labelSelector=selector, propagationPolicy="Background")
        else:
            self._access.delete(f"/api/v1{space}/pods", labelSelector=selector, gracePeriodSeconds=_GRACE_S)
        for priority in self._priorities:
            name = priority_class(priority, self._style)["metadata"]["name"]
            self._access.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")
        if self._is_own:
            self._access.delete(f"/api/v1{space}")
        if not wait_until(self._is_clear, _GONE_S, 0.3):
            raise RunFailed(f"the cluster has not removed everything after {_GONE_S:.0f} s; {self.by_hand}")

    @property
    def by_hand(self) -> str:
        """How to remove what is left."""
        if self._is_own:
            return f"remove it with: kubectl delete namespace {self.namespace}"
        kinds = "jobs,pods" if self._style.dialect is None else f"podgroups.{self._style.dialect.group},pods"
        return f"remove it with: kubectl delete {kinds} -n {self.namespace} -l {LABEL_RUN}={self._style.run}"

    def _is_clear(self) -> bool:
        if self._is_own:
            return not self._access.exists(f"/api/v1/namespaces/{self.namespace}")
        selector = f"{LABEL_RUN}={self._style.run}"
        return not self._access.get(f"/api/v1/namespaces/{self.namespace}/pods", labelSelector=selector)["items"]
