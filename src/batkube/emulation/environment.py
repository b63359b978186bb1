"""The namespace and other objects of a run in a cluster. All have the run's label and are deleted at the end."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from batkube.emulation.client.connection import ApiStatusError, ClusterConnection
from batkube.emulation.client.polling import wait_until
from batkube.emulation.manifests import LABEL_RUN, ManifestOptions, collection_of, local_queue, priority_class
from batkube.kernel.errors import RunFailed

#: How long to wait for the ServiceAccount of a new namespace: until it exists, pods are rejected.
_SERVICE_ACCOUNT_TIMEOUT_S = 15.0
#: The time limit for deleting everything.
_DELETION_TIMEOUT_S = 90.0
#: The grace period of pods: their containers only sleep.
_GRACE_S = 1


def new_run_name() -> str:
    """Return a unique name."""
    return secrets.token_hex(4)


class RunEnvironment:
    """The namespace and the shared objects of a run."""

    def __init__(
        self,
        cluster: ClusterConnection,
        options: ManifestOptions,
        namespace: str | None,
        priorities: Sequence[int],
        queues: Sequence[str] = (),
    ) -> None:
        """`queues` are the Kueue LocalQueues of the jobs, which are created in a new namespace."""
        self._cluster = cluster
        self._queues = queues
        self._options = options
        self._owns_namespace = namespace is None
        self._priorities = priorities
        self.namespace = namespace or f"batkube-{options.run}"

    def prepare(self) -> None:
        """Create the namespace, unless an existing one is used, and the priority classes."""
        if self._owns_namespace:
            metadata = {"name": self.namespace, "labels": {LABEL_RUN: self._options.run}}
            self._cluster.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            wait_until(self._has_service_account, _SERVICE_ACCOUNT_TIMEOUT_S)
            for queue in (local_queue(name, self._options) for name in self._queues):
                self._cluster.create(collection_of(queue, self.namespace), queue)
        for priority in self._priorities:
            self._cluster.create("/apis/scheduling.k8s.io/v1/priorityclasses", priority_class(priority, self._options))

    def _has_service_account(self) -> bool:
        try:
            return self._cluster.exists(f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default")
        except ApiStatusError:
            return True  # The user may not read ServiceAccounts.

    def clean_up(self) -> None:
        """Delete everything with the run's label. Raises RunFailed if objects remain."""
        selector = f"{LABEL_RUN}={self._options.run}"
        namespace_path = f"/namespaces/{self.namespace}"
        if self._options.pod_group_api is not None:
            groups = f"/apis/{self._options.pod_group_api.api_version}{namespace_path}/podgroups"
            self._cluster.delete(groups, labelSelector=selector)
        if self._options.kind.uses_job_controller:
            self._cluster.delete(
                f"/apis/batch/v1{namespace_path}/jobs", labelSelector=selector, propagationPolicy="Background"
            )
        else:
            self._cluster.delete(f"/api/v1{namespace_path}/pods", labelSelector=selector, gracePeriodSeconds=_GRACE_S)
        for priority in self._priorities:
            name = priority_class(priority, self._options)["metadata"]["name"]
            self._cluster.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")
        if self._owns_namespace:
            self._cluster.delete(f"/api/v1{namespace_path}")
        if not wait_until(self._is_clean, _DELETION_TIMEOUT_S, 0.3):
            raise RunFailed(
                f"the cluster has not removed everything after {_DELETION_TIMEOUT_S:.0f} s; {self.manual_cleanup}"
            )

    @property
    def manual_cleanup(self) -> str:
        """The kubectl command that deletes remaining objects."""
        if self._owns_namespace:
            return f"remove it with: kubectl delete namespace {self.namespace}"
        kinds = (
            "jobs,pods"
            if self._options.pod_group_api is None
            else f"podgroups.{self._options.pod_group_api.group},pods"
        )
        return f"remove it with: kubectl delete {kinds} -n {self.namespace} -l {LABEL_RUN}={self._options.run}"

    def _is_clean(self) -> bool:
        if self._owns_namespace:
            return not self._cluster.exists(f"/api/v1/namespaces/{self.namespace}")
        selector = f"{LABEL_RUN}={self._options.run}"
        pods = self._cluster.get(f"/api/v1/namespaces/{self.namespace}/pods", labelSelector=selector)
        return not pods.get("items")
