"""Defaults of what makes pods: groups apps and batch. Kubernetes: pkg/apis/{apps,batch}/v1/defaults.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.defaults import persistent_volume_claim
from batkube.api.groups.core.pods.defaults import fill_template
from batkube.api.groups.filling import Defaults, fill_absent, fill_empty, struct, structs

_REPLICAS: Defaults = {"replicas": 1}
_HISTORY: Defaults = {"revisionHistoryLimit": 10}
_ROLLING: Defaults = {"type": "RollingUpdate"}
_DEPLOYMENT: Defaults = {**_REPLICAS, **_HISTORY, "progressDeadlineSeconds": 600}
_STATEFUL_SET: Defaults = {**_REPLICAS, **_HISTORY}
_RETENTION: Defaults = {"whenDeleted": "Retain", "whenScaled": "Retain"}
_JOB: Defaults = {"parallelism": 1, "completionMode": "NonIndexed", "suspend": False, "manualSelector": False}
_CRON_JOB: Defaults = {"suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
_BACKOFF_LIMIT = 6
#: Of a job that counts failures for each index: no limit for the job as a whole.
_NO_BACKOFF_LIMIT = 2**31 - 1


def deployment(obj: dict[str, Any]) -> None:
    """One replica, replaced a quarter at a time."""
    spec = struct(obj, "spec")
    fill_absent(spec, _DEPLOYMENT)
    strategy = struct(spec, "strategy")
    fill_empty(strategy, _ROLLING)
    if strategy["type"] == "RollingUpdate":
        fill_absent(struct(strategy, "rollingUpdate"), {"maxUnavailable": "25%", "maxSurge": "25%"})
    fill_template(spec.get("template"))


def daemon_set(obj: dict[str, Any]) -> None:
    """Pods replaced one at a time. The number of the template, a field inside the real server, begins with 0."""
    struct(struct(obj, "metadata"), "annotations").setdefault("deprecated.daemonset.template.generation", "0")
    spec = struct(obj, "spec")
    fill_absent(spec, _HISTORY)
    strategy = struct(spec, "updateStrategy")
    fill_empty(strategy, _ROLLING)
    if strategy["type"] == "RollingUpdate":
        fill_absent(struct(strategy, "rollingUpdate"), {"maxUnavailable": 1, "maxSurge": 0})
    fill_template(spec.get("template"))


def stateful_set(obj: dict[str, Any]) -> None:
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
        persistent_volume_claim(claim)
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"


def replica_set(obj: dict[str, Any]) -> None:
    """A ReplicaSet that does not say how many pods it wants has one."""
    spec = struct(obj, "spec")
    fill_absent(spec, _REPLICAS)
    fill_template(spec.get("template"))


def job(obj: dict[str, Any]) -> None:
    """One pod, tried seven times; a job is labelled as its pods are.

    The labels are one and the same map in both, as in the real server: those that the strategy adds show in both.
    """
    spec = struct(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill_absent(spec, _JOB)
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = _BACKOFF_LIMIT if spec.get("backoffLimitPerIndex") is None else _NO_BACKOFF_LIMIT
    if spec.get("podReplacementPolicy") is None:
        replaces_failed = spec.get("podFailurePolicy") is not None
        spec["podReplacementPolicy"] = "Failed" if replaces_failed else "TerminatingOrFailed"
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = struct(obj, "metadata")
    if labels and not metadata.get("labels"):
        metadata["labels"] = labels
    _job_template(spec)


def cron_job(obj: dict[str, Any]) -> None:
    """Runs may overlap; a few finished jobs are kept."""
    spec = struct(obj, "spec")
    fill_empty(spec, {"concurrencyPolicy": "Allow"})
    fill_absent(spec, _CRON_JOB)
    _job_template(struct(struct(spec, "jobTemplate"), "spec"))


def _job_template(spec: dict[str, Any]) -> None:
    for rule in structs(spec.get("podFailurePolicy") or {}, "rules"):
        for pattern in structs(rule, "onPodConditions"):
            fill_empty(pattern, {"status": "True"})
    fill_template(spec.get("template"))
