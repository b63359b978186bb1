"""Validation of pods, and of the few changes that an update may make.

Kubernetes: pkg/apis/core/validation (ValidatePodCreate, ValidatePodUpdate, ValidatePodEphemeralContainersUpdate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.pods.container_validation.containers import check_image_whitespace
from batkube.api.groups.core.pods.container_validation.security_contexts import (
    APPARMOR_CONTAINER,
    check_annotations_match_fields,
)
from batkube.api.groups.core.pods.validation import scheduling
from batkube.api.groups.core.pods.validation.resize import check_resize
from batkube.api.groups.core.pods.validation.spec import MIRROR, check_pod_annotations, check_spec, check_template
from batkube.api.groups.core.pods.validation.status import check_status
from batkube.api.validation.go_values import go_difference, go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_built_in_metadata_update
from batkube.api.validation.names import inclusive_range_message, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules, validate_metadata_update

_INT32_MAX = 2**31 - 1
_MUTABLE_FIELDS_MESSAGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)
_REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def check_pod(pod: Object, problems: Problems) -> None:
    """Check metadata and spec of a pod, on creation and update (Kubernetes: validatePodMetadataAndSpec)."""
    meta, spec = pod["metadata"], pod.get("spec", {})
    check_built_in_metadata(meta, subdomain_name, True, problems)
    if annotations := meta.get("annotations"):
        check_pod_annotations(annotations, spec, "metadata.annotations", problems)
    check_spec(spec, meta, "spec", problems)
    if not spec.get("serviceAccountName"):
        _check_no_token_volumes(spec.get("volumes", ()), problems)
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            check_image_whitespace(container, f"spec.{field}[{index}]", problems)


def _check_no_token_volumes(volumes: Sequence[Mapping[str, Any]], problems: Problems) -> None:
    for index, volume in enumerate(volumes):
        for number, source in enumerate(volume.get("projected", {}).get("sources") or ()):
            if "serviceAccountToken" in source:
                path = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                problems.forbidden(path, "must not be specified when serviceAccountName is not set")


def _validate_pod_create(pod: Object, problems: Problems) -> None:
    check_pod(pod, problems)
    spec = pod.get("spec", {})
    if spec.get("ephemeralContainers"):
        problems.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        problems.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    check_annotations_match_fields(pod["metadata"].get("annotations", {}), spec, "spec", problems)


def check_annotation_changes(new: Object, old: Object, problems: Problems) -> None:
    """Check that annotations used by Kubernetes have changed only as allowed."""
    after, before = new["metadata"].get("annotations", {}), old["metadata"].get("annotations", {})
    if not after and not before:
        return
    for key, value in before.items():
        if after.get(key) != value:
            if key.startswith(APPARMOR_CONTAINER):
                problems.forbidden(f"metadata.annotations[{key}]", "may not remove or update AppArmor annotations")
            if key == MIRROR:
                problems.forbidden(f"metadata.annotations[{key}]", "may not remove or update mirror pod annotation")
    for key in after:
        if key not in before:
            if key.startswith(APPARMOR_CONTAINER):
                problems.forbidden(f"metadata.annotations[{key}]", "may not add AppArmor annotations")
            if key == MIRROR:
                problems.forbidden(f"metadata.annotations[{key}]", "may not add mirror pod annotation")
    check_pod_annotations(after, new.get("spec", {}), "metadata.annotations", problems)


def _validate_pod_update(new: Object, old: Object, problems: Problems) -> None:
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    check_pod(new, problems)
    check_annotation_changes(new, old, problems)
    spec, before = new.get("spec", {}), old.get("spec", {})
    if not _check_same_container_count(spec, before, problems) or not _check_deadline_shrinks(spec, before, problems):
        return
    tolerations = spec.get("tolerations", ()), before.get("tolerations", ())
    scheduling.check_tolerations_only_added(*tolerations, "spec.tolerations", problems)
    gates = spec.get("schedulingGates", ()), before.get("schedulingGates", ())
    scheduling.check_gates_only_removed(*gates, "spec.schedulingGates", problems)
    if spec == before:
        return
    munged = _with_allowed_changes_undone(spec, before)
    if before.get("schedulingGates"):
        _undo_gated_changes(munged, before, problems)
    if munged != before:
        difference = go_difference("core.PodSpec", before, munged)
        detail = f"pod updates may not change fields other than {_MUTABLE_FIELDS_MESSAGE}\n{difference}"
        problems.forbidden("spec", detail)


def _check_same_container_count(spec: Mapping[str, Any], before: Mapping[str, Any], problems: Problems) -> bool:
    """Check that the number of containers is unchanged; if not, all later checks are skipped."""
    for field in ("containers", "initContainers"):
        containers = spec.get(field) or ()
        if len(containers) != len(before.get(field) or ()):
            problems.forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return False
        for index, container in enumerate(containers):
            if not container.get("image"):
                problems.required(f"spec.{field}[{index}].image")
            check_image_whitespace(container, f"spec.{field}[{index}]", problems)
    return True


def _check_deadline_shrinks(spec: Mapping[str, Any], before: Mapping[str, Any], problems: Problems) -> bool:
    path, seconds, earlier = "spec.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"), None
    earlier = before.get("activeDeadlineSeconds")
    if seconds is None:
        if earlier is not None:
            problems.invalid(path, None, "must not update from a positive integer to nil value")
        return True
    if not 0 <= seconds <= _INT32_MAX:
        problems.invalid(path, seconds, inclusive_range_message(0, _INT32_MAX))
        return False
    if earlier is not None and earlier < seconds:
        problems.invalid(path, seconds, "must be less than or equal to previous value")
        return False
    return True


def _restore_field(munged: dict[str, Any], before: Mapping[str, Any], field: str) -> None:
    munged.pop(field, None)
    if field in before:
        munged[field] = before[field]


def _with_allowed_changes_undone(spec: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    munged = dict(spec)
    for field in ("containers", "initContainers"):
        if field in munged:
            pairs = zip(munged[field], before[field], strict=True)
            munged[field] = [{**container, "image": old.get("image", "")} for container, old in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _restore_field(munged, before, field)
    if before.get("terminationGracePeriodSeconds", 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        _restore_field(munged, before, "terminationGracePeriodSeconds")
    return munged


def _undo_gated_changes(munged: dict[str, Any], before: Mapping[str, Any], problems: Problems) -> None:
    """Undo the changes allowed while a pod is gated: stricter node selectors and node affinity."""
    selector, old_selector = munged.get("nodeSelector", {}), before.get("nodeSelector", {})
    if selector != old_selector:
        if not old_selector.items() <= selector.items():
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            problems.invalid("spec.nodeSelector", selector or None, detail)
        _restore_field(munged, before, "nodeSelector")
    affinity, old_affinity = munged.get("affinity"), before.get("affinity")
    nodes, old_nodes = ((value or {}).get("nodeAffinity") for value in (affinity, old_affinity))
    if nodes == old_nodes:
        return
    _check_stricter(nodes, old_nodes, problems)
    other_affinity = {key: value for key, value in (affinity or {}).items() if key != "nodeAffinity"}
    if affinity is not None and old_affinity is None and not other_affinity:
        munged.pop("affinity")
    else:
        munged["affinity"] = {**other_affinity, "nodeAffinity": old_nodes} if old_nodes is not None else other_affinity


def _check_stricter(nodes: Mapping[str, Any] | None, old: Mapping[str, Any] | None, problems: Problems) -> None:
    if old is None or old.get(_REQUIRED_TERMS) is None:
        return
    path = f"spec.affinity.nodeAffinity.{_REQUIRED_TERMS}.nodeSelectorTerms"
    before = old[_REQUIRED_TERMS].get("nodeSelectorTerms") or []
    after = ((nodes or {}).get(_REQUIRED_TERMS) or {}).get("nodeSelectorTerms") or []
    if before and len(before) != len(after):
        go_text = go_struct("[]core.NodeSelectorTerm", after or None)
        problems.invalid(path, go_text, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (term, earlier) in enumerate(zip(after, before, strict=False)):
        if not _only_adds_requirements(term, earlier):
            detail = "only additions are allowed (no mutations or deletions)"
            problems.invalid(f"{path}[{index}]", go_struct("core.NodeSelectorTerm", term), detail)


def _only_adds_requirements(term: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    fields = ("matchExpressions", "matchFields")
    if not any(earlier.get(field) for field in fields):
        return not any(term.get(field) for field in fields)
    return all(term.get(field, [])[: len(earlier.get(field, []))] == earlier.get(field, []) for field in fields)


def _validate_ephemeral_containers_update(new: Object, old: Object, problems: Problems) -> None:
    """Check that ephemeral containers were only added."""
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    check_pod(new, problems)
    check_annotation_changes(new, old, problems)
    if MIRROR in old["metadata"].get("annotations", {}):
        problems.clear()
        problems.forbidden("", "static pods do not support ephemeral containers")
        return
    path = "spec.ephemeralContainers"
    now = {container.get("name", ""): container for container in new.get("spec", {}).get("ephemeralContainers", ())}
    for container in old.get("spec", {}).get("ephemeralContainers", ()):
        name = container.get("name", "")
        if name not in now:
            problems.forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n')
        elif now[name] != container:
            difference = go_difference("core.EphemeralContainer", container, now[name])
            problems.forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n{difference}')


def _validate_resize(new: Object, old: Object, problems: Problems) -> None:
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    check_pod(new, problems)
    check_resize(new, old, problems)


def _validate_pod_status_update(new: Object, old: Object, problems: Problems) -> None:
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    check_annotation_changes(new, old, problems)
    check_status(new, old, problems)


def _validate_template_create(template: Object, problems: Problems) -> None:
    check_built_in_metadata(template["metadata"], subdomain_name, True, problems)
    check_template(template.get("template", {}), "template", problems)


def _validate_template_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    check_template(new.get("template", {}), "template", problems)


POD_RULES = ValidationRules(
    _validate_pod_create,
    _validate_pod_update,
    _validate_pod_status_update,
    {"ephemeralcontainers": _validate_ephemeral_containers_update, "resize": _validate_resize},
)
POD_TEMPLATE_RULES = ValidationRules(_validate_template_create, _validate_template_update)
