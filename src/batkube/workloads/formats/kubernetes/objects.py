"""Manifests as API objects: any kind that the API server serves, each applied at its submission time.

If *jobs* can express all objects of a file, the file is a list of jobs (`manifests`). Otherwise all its objects are
applied to a cluster with controllers, as `kubectl apply` does. Examples are a Deployment, a Job with retries, and a Pod
whose command determines its run time. A file is never split between the two.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from batkube.kernel.instants import Instant
from batkube.workloads import fields as require
from batkube.workloads.fields import Place
from batkube.workloads.formats.kubernetes.annotations import DURATION, SUBMIT, annotated_duration, read_annotations
from batkube.workloads.model import ObjectManifest, Workload

LocatedObject = tuple[Place, Mapping[str, object]]
"""The place and the fields of an object in a file."""

_PREFIX = "batkube.io/"
#: Kinds on which other objects depend; among objects of the same instant, they are applied first.
_KINDS_APPLIED_FIRST = ("CustomResourceDefinition", "Namespace")
#: Fields of a Job that only a Job controller can handle (Kubernetes documentation, "Jobs").
_CONTROLLER_JOB_FIELDS = (
    "backoffLimitPerIndex",
    "managedBy",
    "maxFailedIndexes",
    "podFailurePolicy",
    "podReplacementPolicy",
    "successPolicy",
    "suspend",
    "ttlSecondsAfterFinished",
)


def are_all_jobs(objects: Sequence[LocatedObject]) -> bool:
    """Return whether every object is a PriorityClass, or a Pod or Job with a run time that needs no controller.

    True for a file without objects: the reader of jobs rejects it.
    """
    return all(_is_job(place, fields) for place, fields in objects)


def _is_job(place: Place, fields: Mapping[str, object]) -> bool:
    kind, version = fields.get("kind"), fields.get("apiVersion")
    if kind not in ("Pod", "Job", "PriorityClass") or version not in ("v1", "batch/v1", "scheduling.k8s.io/v1", None):
        return False
    if kind == "PriorityClass":
        return True
    if DURATION not in read_annotations(place, fields):
        return False
    spec = fields.get("spec")
    return kind == "Pod" or not isinstance(spec, Mapping) or _is_gang(spec)


def _is_gang(spec: Mapping[str, object]) -> bool:
    """Return whether all pods of a Job run at the same time and are not retried."""
    parallelism, completions = spec.get("parallelism"), spec.get("completions")
    return (
        not spec.get("backoffLimit")
        and spec.get("completionMode", "NonIndexed") == "NonIndexed"
        and not any(spec.get(field) not in (None, False) for field in _CONTROLLER_JOB_FIELDS)
        and (completions is None or completions == (1 if parallelism is None else parallelism))
        and parallelism != 0
    )


def workload_from_objects(path: Path, name: str, objects: Sequence[LocatedObject]) -> Workload:
    """Return the objects of a file as the workload `name`, in the order of their application."""
    manifests = [_manifest(place, fields, str(path), name) for place, fields in objects]
    manifests.sort(key=lambda manifest: (manifest.at, manifest.kind not in _KINDS_APPLIED_FIRST))
    return Workload(name=name, source=str(path), jobs=(), objects=manifests)


def _manifest(place: Place, fields: Mapping[str, object], source: str, workload: str) -> ObjectManifest:
    for key in ("apiVersion", "kind"):
        require.string(place / key, fields.get(key))
    metadata = require.mapping(place / "metadata", fields.get("metadata"))
    if not metadata.get("name") and not metadata.get("generateName"):
        (place / "metadata" / "name").reject("is missing")
    annotations = read_annotations(place, fields)
    at = annotated_duration(place, annotations, SUBMIT)
    json_fields = _to_json(fields)
    own = {key: text for key, text in annotations.items() if key.startswith(_PREFIX)}
    if own:
        json_fields["metadata"]["annotations"] = {**(json_fields["metadata"].get("annotations") or {}), **own}
    _annotate_pod_template(json_fields, own)
    return ObjectManifest(at=Instant(at or 0), fields=json_fields, workload=workload, source=source, place=place.at)


def _annotate_pod_template(fields: dict[str, Any], own: Mapping[str, str]) -> None:
    """Copy our annotations to the pod template: they describe the pods that a controller will create."""
    copied = {key: text for key, text in own.items() if key != SUBMIT}
    template = pod_template(fields)
    metadata = None if template is None else template.get("metadata") or {}
    # An invalid template stays as it is: the API server reports it.
    if copied and template is not None and isinstance(metadata, dict):
        annotations = metadata.get("annotations") or {}
        if isinstance(annotations, dict):
            template["metadata"] = {**metadata, "annotations": {**annotations, **copied}}


def pod_template(fields: dict[str, Any]) -> dict[str, Any] | None:
    """Return the pod template of an object, also the one inside a CronJob's Job template; None if there is none."""
    spec = fields.get("spec")
    while isinstance(spec, dict):
        template = spec.get("template")
        if isinstance(template, dict):
            return template
        job_template = spec.get("jobTemplate")
        spec = job_template.get("spec") if isinstance(job_template, dict) else None
    return None


def _to_json(value: Any) -> Any:  # noqa: ANN401 - any YAML
    """Convert a YAML value to JSON: dates become texts, and aliased nodes become separate copies."""
    if isinstance(value, Mapping):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value
