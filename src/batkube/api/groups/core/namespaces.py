"""Namespaces: their phase, their finalizers and the label that names them.

Kubernetes: pkg/apis/core and pkg/registry/core/namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.context import Context
from batkube.api.groups.filling import fill_empty, struct
from batkube.api.groups.kind import Kind
from batkube.api.groups.strategy import SPEC, STATUS, Strategy
from batkube.api.printing.ages import age
from batkube.api.validation.metadata import check_built_in_metadata, check_kube_finalizer
from batkube.api.validation.names import label_name, qualified_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, Rules, metadata_update, rechecked
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_METADATA_NAME = "kubernetes.io/metadata.name"


# Defaults


def fill_namespace(obj: dict[str, Any]) -> None:
    """The phase, and the label by which selectors name a namespace; one without a name yet gets it later."""
    name = (obj.get("metadata") or {}).get("name")
    if name:
        struct(obj["metadata"], "labels")[_METADATA_NAME] = name
    fill_empty(struct(obj, "status"), {"phase": "Active"})


# Strategy


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


# Checks


def _check_namespace(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], label_name, False, problems)
    for finalizer in value.get("spec", {}).get("finalizers") or ():
        _check_finalizer(finalizer, "spec.finalizers", problems)


def _check_finalizer(finalizer: str, path: str, problems: Problems) -> None:
    problems.all_invalid(path, finalizer, qualified_name(finalizer))
    check_kube_finalizer(finalizer, path, problems)


def _check_namespace_status(new: Object, old: Object, problems: Problems) -> None:
    metadata_update(new, old, problems)
    phase = new.get("status", {}).get("phase", "")
    if "deletionTimestamp" not in new["metadata"]:
        if phase != "Active":
            problems.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
    elif phase != "Terminating":
        problems.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")


def _check_finalizing_namespace(new: Object, old: Object, problems: Problems) -> None:
    metadata_update(new, old, problems)
    for index, finalizer in enumerate(new.get("spec", {}).get("finalizers") or ()):
        _check_finalizer(finalizer, f"spec.finalizers[{index}]", problems)


# Columns


def namespace_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Namespace."""
    return [value["metadata"].get("name", ""), value.get("status", {}).get("phase", ""), age(value, now)]


#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "namespaces": Kind(
        defaults={"v1": fill_namespace},
        strategy=Strategy(
            keeps={"": (STATUS, ("spec", "finalizers")), "status": (SPEC,), "finalize": (STATUS,)},
        ),
        prepare=create_namespace,
        prepare_update={"": update_namespace},
        rules=Rules(
            _check_namespace,
            rechecked(_check_namespace, metadata_update),
            _check_namespace_status,
            {"finalize": _check_finalizing_namespace},
        ),
        cells=namespace_cells,
    ),
}
