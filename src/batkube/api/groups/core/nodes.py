"""Nodes: taints, CIDRs, capacity and status.

Kubernetes: pkg/apis/core, pkg/registry/core/node and printNode of pkg/printers/internalversion/printers.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from batkube.api.groups.core.pods.validation.scheduling import check_taint_effect
from batkube.api.groups.kind_model.address_warnings import cidr_list_warnings
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.kind_model.defaults import ensure_struct, round_resource_lists
from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS, Strategy
from batkube.api.printing.ages import UNKNOWN, age
from batkube.api.printing.cell_texts import NONE
from batkube.api.validation.addresses import check_cidr, check_one_per_family
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_label_name
from batkube.api.validation.names import config_key, label_name, label_value, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.quantities import check_resource_quantity
from batkube.api.validation.rules import Object, ValidationRules, create_then_update, validate_metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_TAINTS_ANNOTATION = "scheduler.alpha.kubernetes.io/taints"
_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


# Defaults


def set_node_defaults(obj: dict[str, Any]) -> None:
    """Set allocatable to the capacity, and `podCIDR` to the first of `podCIDRs`."""
    status = ensure_struct(obj, "status")
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    round_resource_lists(status, "capacity", "allocatable")
    spec = obj.get("spec") or {}
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and not (ranges and ranges[0] == first):
        spec["podCIDRs"] = [first]
    elif ranges and not first:
        spec["podCIDR"] = ranges[0]


# Strategy


def prepare_node_create(node: dict[str, Any], _context: StrategyContext) -> None:
    """Drop `configSource`: dynamic kubelet configuration was removed."""
    (node.get("spec") or {}).pop("configSource", None)
    (node.get("status") or {}).pop("config", None)


def prepare_node_update(node: dict[str, Any], _old: dict[str, Any], _context: StrategyContext) -> None:
    """Drop `configSource` from a changed spec too; the status has a subresource of its own."""
    (node.get("spec") or {}).pop("configSource", None)


def prepare_node_status_update(node: dict[str, Any], _old: dict[str, Any], _context: StrategyContext) -> None:
    """Drop the status of dynamic kubelet configuration."""
    (node.get("status") or {}).pop("config", None)


# Validation


def _validate_node(node: Object, problems: Problems) -> None:
    meta, spec = node["metadata"], node.get("spec", {})
    check_built_in_metadata(meta, subdomain_name, False, problems)
    _check_annotations(meta.get("annotations") or {}, problems)
    # Kubernetes reports the path `metadata.taints`, though taints are in the spec.
    _check_taints(spec.get("taints") or (), "metadata.taints", problems)
    _check_resources(node, problems)
    swap = node.get("status", {}).get("nodeInfo", {}).get("swap") or {}
    if (capacity := swap.get("capacity")) is not None:
        problems.positive("metadata.nodeSwapStatus.capacity", capacity)
    ranges = spec.get("podCIDRs") or []
    for index, text in enumerate(ranges):
        check_cidr(text, f"spec.podCIDRs[{index}]", problems)
    check_one_per_family(ranges, ranges, "spec.podCIDRs", "CIDR", problems)


def _check_annotations(annotations: Mapping[str, str], problems: Problems) -> None:
    """Check the alpha annotation for taints."""
    if not (text := annotations.get(_TAINTS_ANNOTATION)):
        return
    try:
        taints = json.loads(text)
    except ValueError as wrong:
        problems.invalid("metadata.annotations", _TAINTS_ANNOTATION, str(wrong))
        return
    if isinstance(taints, list) and all(isinstance(taint, dict) for taint in taints):
        _check_taints(taints, f"metadata.annotations.{_TAINTS_ANNOTATION}", problems)


def _check_taints(taints: Sequence[Mapping[str, Any]], path: str, problems: Problems) -> None:
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at, key, effect = f"{path}[{index}]", taint.get("key", ""), taint.get("effect", "")
        check_label_name(key, f"{at}.key", problems)
        if wrong := label_value(taint.get("value", "")):
            problems.invalid(f"{at}.value", taint["value"], ";".join(wrong))
        if not effect:
            problems.required(f"{at}.effect")
        else:
            check_taint_effect(effect, f"{at}.effect", problems)
        if (key, effect) in seen:
            go_text = go_struct("core.Taint", taint)
            problems.duplicate(at, go_text, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def _check_resources(node: Object, problems: Problems) -> None:
    status = node.get("status", {})
    for part in ("capacity", "allocatable"):
        for name, amount in (status.get(part) or {}).items():
            check_resource_quantity(name, amount, f"status.{part}.{name}", problems)


def _validate_node_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    _check_annotations(new["metadata"].get("annotations") or {}, problems)
    _check_resources(new, problems)
    _check_addresses(new.get("status", {}).get("addresses") or (), problems)
    spec, before = new.get("spec", {}), old.get("spec", {})
    _check_immutable_spec(spec, before, problems)
    if (source := spec.get("configSource")) is not None:
        _check_config_source(source, "spec.configSource", problems, in_status=False)
    for name, source in (new.get("status", {}).get("config") or {}).items():
        if name in ("assigned", "active", "lastKnownGood"):
            _check_config_source(source, f"status.config.{name}", problems, in_status=True)
    _check_taints(spec.get("taints") or (), "metadata.taints", problems)
    if spec.get("externalID", "") != before.get("externalID", ""):
        problems.forbidden("spec.externalID", "may not be updated")


def _check_addresses(addresses: Sequence[Mapping[str, Any]], problems: Problems) -> None:
    seen: set[tuple[str, str]] = set()
    for index, address in enumerate(addresses):
        key = (address.get("type", ""), address.get("address", ""))
        if key in seen:
            problems.duplicate(f"status.addresses[{index}]", go_struct("core.NodeAddress", address))
        seen.add(key)


def _check_immutable_spec(spec: Mapping[str, Any], before: Mapping[str, Any], problems: Problems) -> None:
    """Check the fields that cannot change once they are set."""
    ranges, earlier = spec.get("podCIDRs") or [], before.get("podCIDRs") or []
    changed = [cidr for cidr, old_cidr in zip(ranges, earlier, strict=False) if cidr != old_cidr]
    if earlier and len(ranges) != len(earlier):
        changed = [""]
    for _ in changed if earlier else ():
        problems.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    provider = before.get("providerID")
    if provider and provider != spec.get("providerID", ""):
        problems.forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')


def _check_config_source(source: Mapping[str, Any], path: str, problems: Problems, *, in_status: bool) -> None:
    """Check the source of a kubelet's dynamic configuration."""
    config = source.get("configMap")
    if config is None:
        go_text = go_struct("core.NodeConfigSource", source)
        problems.invalid(path, go_text, "exactly one reference subfield must be non-nil")
        return
    path = f"{path}.configMap"
    for field in ("uid", "resourceVersion"):
        if in_status and not config.get(field):
            problems.required(f"{path}.{field}")
        elif not in_status and config.get(field):
            problems.forbidden(f"{path}.{field}", f"{field} must not be set in spec")
    for field, rule in (("namespace", label_name), ("name", subdomain_name)):
        if not (name := config.get(field)):
            problems.required(f"{path}.{field}")
        else:
            problems.all_invalid(f"{path}.{field}", name, rule(name, False))
    if not (key := config.get("kubeletConfigKey")):
        problems.required(f"{path}.kubeletConfigKey")
    else:
        problems.all_invalid(f"{path}.kubeletConfigKey", key, config_key(key))


# Columns


def node_cells(node: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Node."""
    status = node.get("status", {})
    info, addresses = status.get("nodeInfo", {}), status.get("addresses") or ()
    by_type: dict[str, str] = {}
    for address in addresses:
        by_type.setdefault(address.get("type", ""), address.get("address", ""))
    return [
        node["metadata"].get("name", ""),
        _node_status(node, status),
        ",".join(_node_roles(node["metadata"].get("labels") or {})) or NONE,
        age(node, now),
        info.get("kubeletVersion", ""),
        by_type.get("InternalIP", NONE),
        by_type.get("ExternalIP", NONE),
        *(info.get(field) or UNKNOWN for field in ("osImage", "kernelVersion", "containerRuntimeVersion")),
    ]


def _node_status(node: KubeObject, status: Mapping[str, Any]) -> str:
    # The last condition of a type counts, as in Kubernetes' map of conditions.
    ready = {condition.get("type"): condition.get("status") for condition in status.get("conditions") or ()}.get(
        "Ready"
    )
    word = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else word


def _node_roles(labels: Mapping[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {labels.get(_ROLE_LABEL, "")}) - {""})


# Warnings


def node_warnings(node: Mapping[str, Any]) -> list[str]:
    """Return the warnings about a Node: unused fields, and formats of CIDRs."""
    spec, warnings = node.get("spec") or {}, []
    if spec.get("configSource") is not None:
        warnings.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        warnings.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    return warnings + cidr_list_warnings("spec.podCIDRs", spec.get("podCIDRs") or ())


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "nodes": Kind(
        defaults={"v1": set_node_defaults},
        strategy=Strategy(protected_fields=PROTECTED_FIELDS),
        prepare_create=prepare_node_create,
        prepare_update={"": prepare_node_update, "status": prepare_node_status_update},
        rules=ValidationRules(
            _validate_node, create_then_update(_validate_node, _validate_node_update), _validate_node_update
        ),
        cells=node_cells,
        warnings_on_create=node_warnings,
        warnings_on_update={"": create_warnings_on_update(node_warnings)},
    ),
}
