"""Namespaces: their phase, finalizers and name label.

Kubernetes: pkg/apis/core and pkg/registry/core/namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.kind_model.defaults import ensure_struct, fill_empty
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import SPEC, STATUS, Strategy
from batkube.api.printing.ages import age
from batkube.api.validation.metadata import check_built_in_metadata, check_kube_finalizer
from batkube.api.validation.names import label_name, qualified_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules, create_then_update, validate_metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_METADATA_NAME = "kubernetes.io/metadata.name"


# Defaults


def set_namespace_defaults(obj: dict[str, Any]) -> None:
    """Set the phase and the label kubernetes.io/metadata.name; without a name yet, the label follows later."""
    name = (obj.get("metadata") or {}).get("name")
    if name:
        ensure_struct(obj["metadata"], "labels")[_METADATA_NAME] = name
    fill_empty(ensure_struct(obj, "status"), {"phase": "Active"})


# Strategy


def prepare_namespace_create(namespace: dict[str, Any], _context: StrategyContext) -> None:
    """Set the phase Active and the finalizer that keeps a namespace until its content is deleted."""
    name = namespace["metadata"].get("name", "")
    labels = namespace["metadata"].setdefault("labels", {})
    labels[_METADATA_NAME] = name
    namespace["status"] = {"phase": "Active"}
    spec = namespace.setdefault("spec", {})
    finalizers = spec.get("finalizers") or []
    if "kubernetes" not in finalizers:
        spec["finalizers"] = [*finalizers, "kubernetes"]


def prepare_namespace_update(namespace: dict[str, Any], _old: dict[str, Any], _context: StrategyContext) -> None:
    """Set the label kubernetes.io/metadata.name again if a client removed it."""
    metadata = namespace["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), _METADATA_NAME: metadata.get("name", "")}


# Validation


def _validate_namespace(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], label_name, False, problems)
    for finalizer in value.get("spec", {}).get("finalizers") or ():
        _check_finalizer(finalizer, "spec.finalizers", problems)


def _check_finalizer(finalizer: str, path: str, problems: Problems) -> None:
    problems.all_invalid(path, finalizer, qualified_name(finalizer))
    check_kube_finalizer(finalizer, path, problems)


def _validate_namespace_status_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    phase = new.get("status", {}).get("phase", "")
    if "deletionTimestamp" not in new["metadata"]:
        if phase != "Active":
            problems.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
    elif phase != "Terminating":
        problems.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")


def _validate_namespace_finalize_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    for index, finalizer in enumerate(new.get("spec", {}).get("finalizers") or ()):
        _check_finalizer(finalizer, f"spec.finalizers[{index}]", problems)


# Columns


def namespace_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Namespace."""
    return [value["metadata"].get("name", ""), value.get("status", {}).get("phase", ""), age(value, now)]


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "namespaces": Kind(
        defaults={"v1": set_namespace_defaults},
        strategy=Strategy(
            protected_fields={"": (STATUS, ("spec", "finalizers")), "status": (SPEC,), "finalize": (STATUS,)},
        ),
        prepare_create=prepare_namespace_create,
        prepare_update={"": prepare_namespace_update},
        rules=ValidationRules(
            _validate_namespace,
            create_then_update(_validate_namespace, validate_metadata_update),
            _validate_namespace_status_update,
            {"finalize": _validate_namespace_finalize_update},
        ),
        cells=namespace_cells,
    ),
}
