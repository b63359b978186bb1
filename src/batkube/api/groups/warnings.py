"""Warnings: what the server lets pass and still tells the client of, in `Warning` headers.

Every built-in kind that has something to say is in one of two tables by its name in the store; validation has passed
by then, so objects are whole. Kubernetes: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from batkube.api.groups.apps import warnings as workloads
from batkube.api.groups.core import warnings as secrets
from batkube.api.groups.core.pods import warnings as pods
from batkube.api.groups.networking import warnings as networking
from batkube.api.groups.storage import warnings as storage
from batkube.cluster.kinds import Resource

Warn = Callable[[Mapping[str, Any]], list[str]]
WarnOfChange = Callable[[Mapping[str, Any], Mapping[str, Any]], list[str]]


def _of_any_change(warn: Warn) -> WarnOfChange:
    """Warn of a changed object as of a new one."""
    return lambda value, _: warn(value)


#: Kinds that are told the same whether new or changed.
_ALIKE: Mapping[str, Warn] = {
    "csistoragecapacities.storage.k8s.io": storage.of_capacity,
    "endpoints": networking.of_endpoints,
    "networkpolicies.networking.k8s.io": networking.of_network_policy,
    "nodes": networking.of_node,
    "persistentvolumeclaims": storage.of_claim,
    "persistentvolumes": storage.of_volume,
    "runtimeclasses.node.k8s.io": storage.of_runtime_class,
    "secrets": secrets.of_secret,
    "services": networking.of_service,
    "storageclasses.storage.k8s.io": storage.of_storage_class,
}

_CREATE: Mapping[str, Warn] = {
    **_ALIKE,
    "cronjobs.batch": workloads.of_cron_job,
    "daemonsets.apps": workloads.of_template,
    "deployments.apps": workloads.of_named_template,
    "endpointslices.discovery.k8s.io": networking.of_endpoint_slice,
    "ingresses.networking.k8s.io": networking.of_ingress,
    "jobs.batch": workloads.of_job,
    "pods": pods.of_pod,
    "podtemplates": workloads.of_pod_template,
    "replicasets.apps": workloads.of_named_template,
    "replicationcontrollers": workloads.of_named_template,
    "serviceaccounts": secrets.of_service_account,
    "statefulsets.apps": workloads.of_stateful_set,
}

_UPDATE: Mapping[tuple[str, str], WarnOfChange] = {
    **{(storage_name, ""): _of_any_change(warn) for storage_name, warn in _ALIKE.items()},
    ("cronjobs.batch", ""): workloads.of_changed_cron_job,
    ("daemonsets.apps", ""): workloads.of_changed_daemon_set,
    ("deployments.apps", ""): workloads.of_changed_template,
    ("deployments.apps", "scale"): workloads.of_changed_template,
    ("endpointslices.discovery.k8s.io", ""): _of_any_change(networking.of_slice_addresses),
    ("ingresses.networking.k8s.io", "status"): _of_any_change(networking.of_load_balancer),
    ("jobs.batch", ""): workloads.of_changed_job,
    ("pods", "status"): _of_any_change(pods.of_pod_status),
    ("podtemplates", ""): workloads.of_changed_pod_template,
    ("replicasets.apps", ""): workloads.of_changed_template,
    ("replicasets.apps", "scale"): workloads.of_changed_template,
    ("replicationcontrollers", ""): workloads.of_changed_controller,
    ("replicationcontrollers", "scale"): workloads.of_changed_controller,
    ("serviceaccounts", ""): secrets.of_changed_service_account,
    ("services", "status"): _of_any_change(networking.of_load_balancer),
    ("statefulsets.apps", ""): workloads.of_changed_stateful_set,
    ("statefulsets.apps", "scale"): workloads.of_changed_stateful_set,
}


def on_create(resource: Resource, value: Mapping[str, Any]) -> list[str]:
    """Return what the creator of a valid object is told."""
    warn = _CREATE.get(resource.storage)
    return warn(value) if warn else []


def on_update(resource: Resource, value: Mapping[str, Any], old: Mapping[str, Any], subresource: str) -> list[str]:
    """Return what is told about a valid change."""
    warn = _UPDATE.get((resource.storage, subresource))
    return warn(value, old) if warn else []
