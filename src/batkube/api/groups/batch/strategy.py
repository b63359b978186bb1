"""Strategies of jobs and cron jobs. Kubernetes: pkg/registry/batch."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.context import Context
from batkube.api.groups.core.pods.strategy import clean_template, drop_from_template

_JOB_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_JOB_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")


def drop_from_cron_job(cron_job: dict[str, Any], *_rest: object) -> None:
    """Nor does the template inside a CronJob's template of Jobs."""
    job = (cron_job.get("spec") or {}).get("jobTemplate") or {}
    clean_template((job.get("spec") or {}).get("template"))


def create_job(job: dict[str, Any], _context: Context) -> None:
    """Label the pods of a job so that its selector finds them and no others.

    Without labels of its own the job is labelled as its pods are: the real server fills defaults in again when it reads
    the object back. Its template's labels, and with them those filled in before, are one map there.
    """
    drop_from_template(job)
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
    label_as_template(job)


def label_as_template(job: dict[str, Any], _old: object = None, _context: Context | None = None) -> None:
    """Label a job without labels of its own as its pods are."""
    labels = (job["spec"].get("template", {}).get("metadata") or {}).get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = labels
