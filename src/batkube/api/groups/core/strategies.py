"""Strategies of single kinds, beyond what the table says. Kubernetes: pkg/registry/GROUP/KIND/strategy.go."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.context import Context
from batkube.api.groups.core.pods.strategy import drop_disabled_fields
from batkube.kernel.instants import rfc3339
from batkube.kernel.numbers import int_of

_METADATA_NAME = "kubernetes.io/metadata.name"
#: Written into DaemonSets for clients older than the API group apps/v1.
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_JOB_NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
_JOB_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
#: What a claim may be filled from when it says so in the older of the two fields.
_DATA_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


# core


def create_namespace(namespace: dict[str, Any], _context: Context) -> None:
    """A new namespace is active, and stays until its content is gone."""
    name = namespace["metadata"].get("name", "")
    labels = namespace["metadata"].setdefault("labels", {})
    labels[_METADATA_NAME] = name
    namespace["status"] = {"phase": "Active"}
    spec = namespace.setdefault("spec", {})
    finalizers = spec.get("finalizers") or []
    if "kubernetes" not in finalizers:
        spec["finalizers"] = [*finalizers, "kubernetes"]


def update_namespace(namespace: dict[str, Any], _old: dict[str, Any], _context: Context) -> None:
    """The label by which selectors name a namespace stays."""
    metadata = namespace["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), _METADATA_NAME: metadata.get("name", "")}


def create_node(node: dict[str, Any], _context: Context) -> None:
    """Kubelets are no longer configured through the API."""
    (node.get("spec") or {}).pop("configSource", None)
    (node.get("status") or {}).pop("config", None)


def update_node(node: dict[str, Any], _old: dict[str, Any], _context: Context) -> None:
    """What once configured a kubelet is dropped from a changed spec too; its status has its own way in."""
    (node.get("spec") or {}).pop("configSource", None)


def update_node_status(node: dict[str, Any], _old: dict[str, Any], _context: Context) -> None:
    """What a kubelet once reported of such a configuration is dropped from its status."""
    (node.get("status") or {}).pop("config", None)


def create_volume(volume: dict[str, Any], context: Context) -> None:
    """A new volume is pending since now."""
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": rfc3339(context.now)}


def update_volume_status(volume: dict[str, Any], old: dict[str, Any], context: Context) -> None:
    """A change of phase is dated."""
    status, before = volume.setdefault("status", {}), old.get("status") or {}
    new, live = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
    if status.get("phase") != before.get("phase"):
        if new is None or new == live:
            status["lastPhaseTransitionTime"] = rfc3339(context.now)
    elif new is None and live is not None:
        status["lastPhaseTransitionTime"] = live


def create_claim(claim: dict[str, Any], _context: Context) -> None:
    """A new claim is pending; both ways to say what it is filled from agree."""
    claim["status"] = {"phase": "Pending"}
    spec = claim["spec"]
    _drop_foreign_sources(spec, {})
    _match_data_sources(spec)


def update_claim(claim: dict[str, Any], old: dict[str, Any], _context: Context) -> None:
    """Both ways to say what a claim is filled from agree after a change too; what was taken before may stay."""
    _drop_foreign_sources(claim["spec"], old["spec"])
    _match_data_sources(claim["spec"])


def _drop_foreign_sources(spec: dict[str, Any], before: dict[str, Any]) -> None:
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and before.get("dataSourceRef") is None:
        del spec["dataSourceRef"]
        reference = None
    source = spec.get("dataSource")
    if source is not None and reference is None and before.get("dataSource") is None:
        known = (source.get("apiGroup") or "", source.get("kind", "")) in _DATA_SOURCES
        if not known:
            del spec["dataSource"]


def _match_data_sources(spec: dict[str, Any]) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {name: value for name, value in reference.items() if name != "namespace"}


def clean_service_account(account: dict[str, Any], *_rest: object) -> None:
    """Secrets are named, nothing more."""
    if account.get("secrets"):
        account["secrets"] = [{"name": each["name"]} if each.get("name") else {} for each in account["secrets"]]


def update_secret(secret: dict[str, Any], old: dict[str, Any], _context: Context) -> None:
    """A secret that does not say its type keeps it."""
    if not secret.get("type"):
        secret["type"] = old.get("type", "")


# apps, batch


def drop_from_template(workload: dict[str, Any], *_rest: object) -> None:
    """Templates hold nothing of features that are off."""
    _clean_template((workload.get("spec") or {}).get("template"))


def drop_from_pod_template(template: dict[str, Any], *_rest: object) -> None:
    """A PodTemplate, too, holds nothing of features that are off."""
    _clean_template(template.get("template"))


def drop_from_cron_job(cron_job: dict[str, Any], *_rest: object) -> None:
    """Nor does the template inside a CronJob's template of Jobs."""
    job = (cron_job.get("spec") or {}).get("jobTemplate") or {}
    _clean_template((job.get("spec") or {}).get("template"))


def _clean_template(template: dict[str, Any] | None) -> None:
    spec = (template or {}).get("spec")
    if spec:
        drop_disabled_fields(spec)


def create_daemon_set(daemon_set: dict[str, Any], _context: Context) -> None:
    """Number the template, beside the object."""
    drop_from_template(daemon_set)
    annotations = daemon_set["metadata"].setdefault("annotations", {})
    annotations[_TEMPLATE_GENERATION] = str(max(_number(annotations.get(_TEMPLATE_GENERATION)), 1))


def update_daemon_set(daemon_set: dict[str, Any], old: dict[str, Any], _context: Context) -> None:
    """Count changes of the template."""
    drop_from_template(daemon_set)
    number = _number((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION))
    if daemon_set["spec"].get("template") != old["spec"].get("template"):
        number += 1
    metadata = daemon_set["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: str(number)}


def _number(text: str | None) -> int:
    try:
        return int_of(text or "0") or 0
    except ValueError:
        return 0


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
    if labels and not metadata.get("labels"):
        metadata["labels"] = labels


# apiregistration.k8s.io, certificates.k8s.io


def create_api_service(service: dict[str, Any], context: Context) -> None:
    """What this server serves itself is always available."""
    if (service.get("spec") or {}).get("service") is None:
        condition = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": rfc3339(context.now),
            "reason": "Local",
            "message": "Local APIServices are always available",
        }
        service["status"] = {"conditions": [condition]}


def create_signing_request(request: dict[str, Any], context: Context) -> None:
    """A request tells who makes it, whatever it says itself."""
    spec = request["spec"]
    for name in ("username", "uid", "groups", "extra"):
        spec.pop(name, None)
    if context.user:
        spec["username"] = context.user
    if context.uid:
        spec["uid"] = context.uid
    if context.groups:
        spec["groups"] = list(context.groups)


def update_signing_conditions(request: dict[str, Any], old: dict[str, Any], context: Context) -> None:
    """New conditions are dated."""
    now = rfc3339(context.now)
    live = (old.get("status") or {}).get("conditions") or ()
    for condition in (request.get("status") or {}).get("conditions") or ():
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now
        if not condition.get("lastTransitionTime"):
            same = [each for each in live if all(each.get(key) == condition.get(key) for key in ("type", "status"))]
            condition["lastTransitionTime"] = (same and same[0].get("lastTransitionTime")) or now


def update_signing_status(request: dict[str, Any], old: dict[str, Any], context: Context) -> None:
    """A status write neither approves nor denies; validation refuses one that tries."""
    conditions = (request.get("status") or {}).get("conditions") or []
    before = (old.get("status") or {}).get("conditions") or ()
    for decided in ("Approved", "Denied"):
        places = [index for index, each in enumerate(conditions) if each.get("type") == decided]
        known = [each for each in before if each.get("type") == decided]
        if len(places) == len(known):
            for index, condition in zip(places, known, strict=True):
                conditions[index] = condition
    update_signing_conditions(request, old, context)
