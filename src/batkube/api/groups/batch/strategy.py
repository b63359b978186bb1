"""Strategies of Jobs and CronJobs. Kubernetes: pkg/registry/batch."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.pods.strategy import drop_disabled_template_fields, prepare_workload_template
from batkube.api.groups.kind_model.context import StrategyContext

_JOB_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_JOB_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")


def prepare_cron_job(cron_job: dict[str, Any], *_rest: object) -> None:
    """Drop the fields of disabled features from the pod template in a CronJob's job template."""
    job = (cron_job.get("spec") or {}).get("jobTemplate") or {}
    drop_disabled_template_fields((job.get("spec") or {}).get("template"))


def prepare_job_create(job: dict[str, Any], _context: StrategyContext) -> None:
    """Label the pods of a job so that its selector matches exactly them.

    A job without labels gets those of its template: kube-apiserver defaults the object again when it decodes it from
    storage. If the labels were defaulted before, job and template share one map.
    """
    prepare_workload_template(job)
    spec, metadata = job["spec"], job["metadata"]
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = template.get("labels") or {}
    if not spec.get("manualSelector"):
        # With generateName, kube-apiserver copies the object before each attempt, and thereby the map.
        shared = metadata.get("labels") is labels and not metadata.get("generateName")
        uid = metadata.get("uid", "")
        added = {**dict.fromkeys(_JOB_NAME_LABELS, metadata.get("name", "")), **dict.fromkeys(_JOB_UID_LABELS, uid)}
        labels = template["labels"] = {**added, **labels}
        if shared:
            metadata["labels"] = labels
        selector = spec.setdefault("selector", {})
        selector["matchLabels"] = {_JOB_UID_LABELS[1]: uid, **(selector.get("matchLabels") or {})}
    copy_template_labels(job)


def copy_template_labels(job: dict[str, Any], _old: object = None, _context: StrategyContext | None = None) -> None:
    """Copy the template's labels to a job that has none."""
    labels = (job["spec"].get("template", {}).get("metadata") or {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = labels
