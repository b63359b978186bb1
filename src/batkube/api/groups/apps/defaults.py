"""Defaults of what makes pods. Kubernetes: pkg/apis/apps/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.pods.defaults import fill_template
from batkube.api.groups.core.volumes.defaults import fill_persistent_volume_claim
from batkube.api.groups.filling import Defaults, fill_absent, fill_empty, struct, structs

_REPLICAS: Defaults = {"replicas": 1}
_HISTORY: Defaults = {"revisionHistoryLimit": 10}
_ROLLING: Defaults = {"type": "RollingUpdate"}
_DEPLOYMENT: Defaults = {**_REPLICAS, **_HISTORY, "progressDeadlineSeconds": 600}
_STATEFUL_SET: Defaults = {**_REPLICAS, **_HISTORY}
_RETENTION: Defaults = {"whenDeleted": "Retain", "whenScaled": "Retain"}


def fill_deployment(obj: dict[str, Any]) -> None:
    """One replica, replaced a quarter at a time."""
    spec = struct(obj, "spec")
    fill_absent(spec, _DEPLOYMENT)
    strategy = struct(spec, "strategy")
    fill_empty(strategy, _ROLLING)
    if strategy["type"] == "RollingUpdate":
        fill_absent(struct(strategy, "rollingUpdate"), {"maxUnavailable": "25%", "maxSurge": "25%"})
    fill_template(spec.get("template"))


def fill_daemon_set(obj: dict[str, Any]) -> None:
    """Pods replaced one at a time. The number of the template, a field inside the real server, begins with 0."""
    struct(struct(obj, "metadata"), "annotations").setdefault("deprecated.daemonset.template.generation", "0")
    spec = struct(obj, "spec")
    fill_absent(spec, _HISTORY)
    strategy = struct(spec, "updateStrategy")
    fill_empty(strategy, _ROLLING)
    if strategy["type"] == "RollingUpdate":
        fill_absent(struct(strategy, "rollingUpdate"), {"maxUnavailable": 1, "maxSurge": 0})
    fill_template(spec.get("template"))


def fill_stateful_set(obj: dict[str, Any]) -> None:
    """One replica, started in order; claims are kept."""
    spec = struct(obj, "spec")
    fill_absent(spec, _STATEFUL_SET)
    fill_empty(spec, {"podManagementPolicy": "OrderedReady"})
    strategy = struct(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        struct(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        fill_absent(strategy["rollingUpdate"], {"partition": 0})
    fill_empty(struct(spec, "persistentVolumeClaimRetentionPolicy"), _RETENTION)
    fill_template(spec.get("template"))
    for claim in structs(spec, "volumeClaimTemplates"):
        fill_persistent_volume_claim(claim)
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"


def fill_replica_set(obj: dict[str, Any]) -> None:
    """A ReplicaSet that does not say how many pods it wants has one."""
    spec = struct(obj, "spec")
    fill_absent(spec, _REPLICAS)
    fill_template(spec.get("template"))


def fill_replication_controller(obj: dict[str, Any]) -> None:
    """One replica; selector and labels of the template."""
    spec = struct(obj, "spec")
    fill_absent(spec, {"replicas": 1})
    template = spec.get("template")
    labels = ((template or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = struct(obj, "metadata")
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    fill_template(template)
