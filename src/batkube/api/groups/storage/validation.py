"""Validation of StorageClasses, CSIDrivers, CSINodes, VolumeAttachments (pkg/apis/storage/validation)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.volumes.source_validation import check_csi_driver_name
from batkube.api.groups.core.volumes.validation import check_volume_spec
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_label_name, check_selector
from batkube.api.validation.names import byte_length, inclusive_range_message, qualified_name, subdomain_name
from batkube.api.validation.problems import IMMUTABLE, NOT_NEGATIVE, Problems, mark_repeats
from batkube.api.validation.quantities import quantity
from batkube.api.validation.rules import Object, ValidationRules, create_then_update, validate_metadata_update

_PARAMETERS_BYTES_MAX = 256 * 1024
_FS_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LIFECYCLE_MODES = ("Persistent", "Ephemeral")
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _check_provisioner(name: str, path: str, problems: Problems) -> None:
    if not name:
        problems.required(path)
    else:
        problems.all_invalid(path, name.lower(), qualified_name(name.lower()))


def _check_parameters(parameters: Mapping[str, str], path: str, problems: Problems, *, needed: bool) -> None:
    if len(parameters) > 512:
        problems.too_long(path, 512)
        return
    if "" in parameters:
        problems.invalid(path, "", "field can not be empty.")
    if sum(byte_length(key) + byte_length(value) for key, value in parameters.items()) > _PARAMETERS_BYTES_MAX:
        problems.too_long(path, _PARAMETERS_BYTES_MAX)
    if needed and not parameters:
        problems.required(path, "must contain at least one key/value pair")


def _validate_storage_class(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    _check_provisioner(value.get("provisioner", ""), "provisioner", problems)
    _check_parameters(value.get("parameters") or {}, "parameters", problems, needed=False)
    if (policy := value.get("reclaimPolicy")) and policy not in ("Delete", "Retain"):
        problems.not_supported("reclaimPolicy", policy, ("Delete", "Retain"))
    modes = ("Immediate", "WaitForFirstConsumer")
    if (mode := value.get("volumeBindingMode")) is None:
        problems.required("volumeBindingMode")
    elif mode not in modes:
        problems.not_supported("volumeBindingMode", mode, modes)
    terms = value.get("allowedTopologies") or ()
    # Kubernetes preallocates as many empty terms as there are terms, so an empty term is always a duplicate.
    seen: Counter[frozenset[tuple[str, frozenset[str]]]] = Counter({frozenset(): len(terms)})
    for index, term in enumerate(terms):
        topology = frozenset(_check_topology(term, f"allowedTopologies[{index}]", problems).items())
        for _ in range(0 if problems.is_full else seen[topology]):
            problems.duplicate(f"allowedTopologies[{index}].matchLabelExpressions", "")
        seen[topology] += 1


def _check_topology(term: Mapping[str, Any], path: str, problems: Problems) -> dict[str, frozenset[str]]:
    values_by_key: dict[str, frozenset[str]] = {}
    for index, requirement in enumerate(term.get("matchLabelExpressions") or ()):
        at = f"{path}.matchLabelExpressions[{index}]"
        key, values = requirement.get("key", ""), requirement.get("values") or []
        if not values:
            problems.required(f"{at}.values")
        for number, (value, is_repeated) in enumerate(zip(values, mark_repeats(values), strict=True)):
            if is_repeated:
                problems.duplicate(f"{at}.values[{number}]", value)
        check_label_name(key, f"{at}.key", problems)
        if key in values_by_key:
            problems.duplicate(f"{at}.key", key)
        values_by_key[key] = frozenset(values)
    return values_by_key


def _validate_storage_class_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    for field in ("parameters", "provisioner", "reclaimPolicy"):
        if (new.get(field) or None) != (old.get(field) or None):
            problems.forbidden(field, f"updates to {field} are forbidden.")
    problems.unchanged("volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode"))


def _validate_attachment(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    spec, status = value.get("spec", {}), value.get("status", {})
    if not spec.get("attacher"):
        problems.required("spec.attacher")
    _check_attachment_source(spec.get("source", {}), problems)
    node = spec.get("nodeName", "")
    problems.all_invalid("spec.nodeName", node, subdomain_name(node, False))
    notes = status.get("attachmentMetadata") or {}
    if sum(byte_length(key) + byte_length(text) for key, text in notes.items()) > _PARAMETERS_BYTES_MAX:
        problems.too_long("status.attachmentMetadata", _PARAMETERS_BYTES_MAX)
    for field in ("attachError", "detachError"):
        error = status.get(field) or {}
        if byte_length(error.get("message", "")) > 1024:
            problems.too_long(f"status.{field}.message", _PARAMETERS_BYTES_MAX)
        if (code := error.get("errorCode") or 0) < 0:
            problems.invalid(f"status.{field}.errorCode", code, inclusive_range_message(0, 2**31 - 1))


def _check_attachment_source(source: Mapping[str, Any], problems: Problems) -> None:
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and name is None:
        problems.required("spec.source", _ONE_SOURCE)
    elif inline is not None and name is not None:
        problems.forbidden("spec.source", _ONE_SOURCE)
    elif name is not None:
        if not name:
            problems.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    elif inline is not None:
        check_volume_spec(inline, "", "spec.source.inlineVolumeSpec", problems, inline=True)


def _validate_attachment_create(value: Object, problems: Problems) -> None:
    _validate_attachment(value, problems)
    spec = value.get("spec", {})
    check_csi_driver_name(spec.get("attacher", ""), "spec.attacher", problems)
    if (name := spec.get("source", {}).get("persistentVolumeName")) is not None:
        problems.all_invalid("spec.source.persistentVolumeName", name, subdomain_name(name, False))


def _validate_attachment_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_attachment(new, problems)
    if new.get("spec", {}) != old.get("spec", {}):
        problems.invalid("spec", go_struct("storage.VolumeAttachmentSpec", new.get("spec", {})), IMMUTABLE)


def _validate_csi_node(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    names: set[str] = set()
    for index, driver in enumerate(value.get("spec", {}).get("drivers") or ()):
        path, name, node = f"spec.drivers[{index}]", driver.get("name", ""), driver.get("nodeID", "")
        check_csi_driver_name(name, f"{path}.name", problems)
        if not node:
            problems.required(f"{path}.nodeID")
        if byte_length(node) > 256:
            problems.invalid(f"{path}.nodeID", node, "must be 256 characters or less")
        count = (driver.get("allocatable") or {}).get("count") or 0
        problems.not_negative(f"{path}.allocatable.count", count)
        if name in names:
            problems.duplicate(f"{path}.name", name)
        names.add(name)
        _check_topology_keys(driver.get("topologyKeys") or (), path, problems)


def _check_topology_keys(keys: Sequence[str], path: str, problems: Problems) -> None:
    for key, is_repeated in zip(keys, mark_repeats(keys), strict=True):
        if not key:
            problems.required(path)
        if is_repeated:
            problems.duplicate(path, key)
        problems.all_invalid(path, key, qualified_name(key))


def _validate_csi_node_update(new: Object, old: Object, problems: Problems) -> None:
    _validate_csi_node(new, problems)
    drivers = new.get("spec", {}).get("drivers") or ()
    for before in old.get("spec", {}).get("drivers") or ():
        for driver in drivers:
            if driver.get("name") == before.get("name") and driver != before:
                problems.invalid("spec.drivers", go_struct("storage.CSINodeDriver", driver), IMMUTABLE)


def _check_driver_spec(value: Object, problems: Problems) -> None:
    spec = value.get("spec", {})
    for field, path in (
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ):
        if spec.get(field) is None:
            problems.required(f"spec.{path}")
    if (policy := spec.get("fsGroupPolicy")) is not None and policy not in _FS_GROUP_POLICIES:
        problems.not_supported("spec.fsGroupPolicy", policy, _FS_GROUP_POLICIES)
    _check_token_requests(spec.get("tokenRequests") or (), problems)
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in _LIFECYCLE_MODES:
            problems.not_supported("spec.volumeLifecycleModes", mode, _LIFECYCLE_MODES)
    if spec.get("seLinuxMount") is None:
        problems.required("spec.seLinuxMount")
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        detail = "must be greater than or equal to 10 seconds"
        problems.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, detail)


def _check_token_requests(requests: Sequence[Mapping[str, Any]], problems: Problems) -> None:
    seen: set[str] = set()
    for index, request in enumerate(requests):
        path, audience, seconds = (
            f"spec.tokenRequests[{index}]",
            request.get("audience", ""),
            request.get("expirationSeconds"),
        )
        if audience in seen:
            problems.duplicate(f"{path}.audience", audience)
            continue
        seen.add(audience)
        if seconds is not None and seconds < 600:
            detail = "may not specify a duration less than 10 minutes"
            problems.invalid(f"{path}.expirationSeconds", seconds, detail)
        if seconds is not None and seconds > 2**32:
            detail = "may not specify a duration larger than 2^32 seconds"
            problems.invalid(f"{path}.expirationSeconds", seconds, detail)


def _validate_driver(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    _check_driver_spec(value, problems)


def _validate_driver_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _check_driver_spec(new, problems)
    spec, before = new.get("spec", {}), old.get("spec", {})
    for field, path in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        if spec.get(field) != before.get(field):
            problems.invalid(f"spec.{path}", spec.get(field), IMMUTABLE)


def _validate_capacity(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    check_selector(value.get("nodeTopology"), "nodeTopology", problems)
    name = value.get("storageClassName", "")
    problems.all_invalid("storageClassName", name, subdomain_name(name, False))
    amount = value.get("capacity")
    if amount is not None and quantity(amount).nanos < 0:
        problems.invalid("capacity", str(amount), NOT_NEGATIVE)


def _validate_capacity_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    topology = new.get("nodeTopology")
    if topology != old.get("nodeTopology"):
        problems.invalid("nodeTopology", go_struct("*meta.LabelSelector", topology), IMMUTABLE)
    if (name := new.get("storageClassName", "")) != old.get("storageClassName", ""):
        problems.invalid("storageClassName", name, IMMUTABLE)


def _validate_attributes_class(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, False, problems)
    _check_provisioner(value.get("driverName", ""), "driverName", problems)
    _check_parameters(value.get("parameters") or {}, "parameters", problems, needed=True)


def _validate_attributes_class_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    for field in ("driverName", "parameters"):
        if (new.get(field) or None) != (old.get(field) or None):
            problems.forbidden(field, f"updates to {field} are forbidden.")
    _validate_attributes_class(new, problems)


CSIDRIVER_RULES = ValidationRules(_validate_driver, _validate_driver_update)
CSINODE_RULES = ValidationRules(_validate_csi_node, create_then_update(_validate_csi_node, _validate_csi_node_update))
CSISTORAGE_CAPACITY_RULES = ValidationRules(
    _validate_capacity, create_then_update(_validate_capacity, _validate_capacity_update)
)
STORAGE_CLASS_RULES = ValidationRules(
    _validate_storage_class, create_then_update(_validate_storage_class, _validate_storage_class_update)
)
VOLUME_ATTACHMENT_RULES = ValidationRules(
    _validate_attachment_create,
    create_then_update(_validate_attachment, _validate_attachment_update),
    create_then_update(_validate_attachment, _validate_attachment_update),
)
VOLUME_ATTRIBUTES_CLASS_RULES = ValidationRules(
    _validate_attributes_class, create_then_update(_validate_attributes_class, _validate_attributes_class_update)
)
