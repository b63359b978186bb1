"""Strategies of jobs and cron jobs. Kubernetes: pkg/registry/batch."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.core.pods.strategy import drop_disabled_template_fields, prepare_workload_template
from batkube.api.groups.kind_model.context import StrategyContext

_JOB_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_JOB_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")


def prepare_cron_job(cron_job: dict[str, Any], *_rest: object) -> None:
    """Nor does the template inside a CronJob's template of Jobs."""
    job = (cron_job.get("spec") or {}).get("jobTemplate") or {}
    drop_disabled_template_fields((job.get("spec") or {}).get("template"))


def prepare_job_create(job: dict[str, Any], _context: StrategyContext) -> None:
    """Label the pods of a job so that its selector finds them and no others.

    Without labels of its own the job is labelled as its pods are: the real server fills defaults in again when it reads
    the object back. Its template's labels, and with them those filled in before, are one map there.
    """
    prepare_workload_template(job)
    spec, metadata = job["spec"], job["metadata"]
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = template.get("labels") or {}
    if not spec.get("manualSelector"):
        # With a name to be generated the object is copied for another try, and with it the map.
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
    """Label a job without labels of its own as its pods are."""
    labels = (job["spec"].get("template", {}).get("metadata") or {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = labels
