"""Defaults of the kinds of the group apps. Kubernetes: pkg/apis/apps/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.pods.defaults import set_template_defaults
from batkube.api.groups.core.volumes.defaults import set_persistent_volume_claim_defaults
from batkube.api.groups.kind_model.defaults import Defaults, ensure_struct, fill_absent, fill_empty, list_items

_REPLICAS: Defaults = {"replicas": 1}
_HISTORY: Defaults = {"revisionHistoryLimit": 10}
_ROLLING: Defaults = {"type": "RollingUpdate"}
_DEPLOYMENT: Defaults = {**_REPLICAS, **_HISTORY, "progressDeadlineSeconds": 600}
_STATEFUL_SET: Defaults = {**_REPLICAS, **_HISTORY}
_RETENTION: Defaults = {"whenDeleted": "Retain", "whenScaled": "Retain"}


def set_deployment_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of replicas (1), update strategy (25 %) and history."""
    spec = ensure_struct(obj, "spec")
    fill_absent(spec, _DEPLOYMENT)
    strategy = ensure_struct(spec, "strategy")
    fill_empty(strategy, _ROLLING)
    if strategy["type"] == "RollingUpdate":
        fill_absent(ensure_struct(strategy, "rollingUpdate"), {"maxUnavailable": "25%", "maxSurge": "25%"})
    set_template_defaults(spec.get("template"))


def set_daemon_set_defaults(obj: dict[str, Any]) -> None:
    """Set the update strategy (one pod at a time); the internal field templateGeneration starts at 0."""
    ensure_struct(ensure_struct(obj, "metadata"), "annotations").setdefault(
        "deprecated.daemonset.template.generation", "0"
    )
    spec = ensure_struct(obj, "spec")
    fill_absent(spec, _HISTORY)
    strategy = ensure_struct(spec, "updateStrategy")
    fill_empty(strategy, _ROLLING)
    if strategy["type"] == "RollingUpdate":
        fill_absent(ensure_struct(strategy, "rollingUpdate"), {"maxUnavailable": 1, "maxSurge": 0})
    set_template_defaults(spec.get("template"))


def set_stateful_set_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of replicas (1), pod management policy (OrderedReady) and claim retention (Retain)."""
    spec = ensure_struct(obj, "spec")
    fill_absent(spec, _STATEFUL_SET)
    fill_empty(spec, {"podManagementPolicy": "OrderedReady"})
    strategy = ensure_struct(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        ensure_struct(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        fill_absent(strategy["rollingUpdate"], {"partition": 0})
    fill_empty(ensure_struct(spec, "persistentVolumeClaimRetentionPolicy"), _RETENTION)
    set_template_defaults(spec.get("template"))
    for claim in list_items(spec, "volumeClaimTemplates"):
        set_persistent_volume_claim_defaults(claim)
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"


def set_replica_set_defaults(obj: dict[str, Any]) -> None:
    """Set the default of replicas (1)."""
    spec = ensure_struct(obj, "spec")
    fill_absent(spec, _REPLICAS)
    set_template_defaults(spec.get("template"))


def set_replication_controller_defaults(obj: dict[str, Any]) -> None:
    """Set the defaults of replicas (1), and of selector and labels (those of the template)."""
    spec = ensure_struct(obj, "spec")
    fill_absent(spec, {"replicas": 1})
    template = spec.get("template")
    labels = ((template or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = ensure_struct(obj, "metadata")
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    set_template_defaults(template)
