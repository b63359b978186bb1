"""Tables: objects as rows of cells, which is what `kubectl get` asks for.

Kubernetes: asTable of apiserver/pkg/endpoints/handlers/response.go. A Table is the answer to a request that accepts
`application/json;as=Table;v=v1;g=meta.k8s.io`, for one object, a list, or each event of a watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from batkube.api.printing.printers import Printer
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

#: What `includeObject` may be; empty means Metadata.
_INCLUDE_OBJECT_VALUES = ("None", "Metadata", "Object", "")
#: Annotations in which a version of a kind keeps fields that it does not have, by how they begin.
_FIELDS_AS_ANNOTATIONS = {
    ("apps/v1", "DaemonSet"): "deprecated.daemonset.template.generation",
    ("autoscaling/v1", "HorizontalPodAutoscaler"): "autoscaling.alpha.kubernetes.io/",
}
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def include_problem(include_object: str) -> str | None:
    """Return what is wrong with the query parameter `includeObject`, which is answered with 400."""
    if include_object in _INCLUDE_OBJECT_VALUES:
        return None
    return (
        f'Unable to convert to Table as requested: includeObject: Invalid value: "{include_object}": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def make_table(
    printer: Printer,
    objects: Iterable[KubeObject],
    now: Instant,
    *,
    metadata: Mapping[str, Any],
    include_object: str = "",
    headers: bool = True,
    version: str = "v1",
) -> dict[str, Any]:
    """Return the Table of `objects`, which have their version in `metadata.resourceVersion`.

    `metadata` is that of the list (resourceVersion, continue, remainingItemCount), or of the one object, of which only
    its version is told. Only the first event of a watch has `headers`. `version` is that of the group meta.k8s.io.
    """
    ordered = objects if printer.sort_key is None else sorted(objects, key=printer.sort_key)
    rows = [_row(printer, value, now, include_object, version) for value in ordered]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {
            field: metadata[field]
            for field in ("resourceVersion", "continue", "remainingItemCount")
            if metadata.get(field)
        },
        "columnDefinitions": printer.columns if headers else None,
        "rows": rows or printer.empty_rows,
    }


def _row(printer: Printer, value: KubeObject, now: Instant, include_object: str, version: str) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": printer.cells(value, now)}
    conditions = printer.row_conditions and printer.row_conditions(value)
    if conditions:
        row["conditions"] = conditions
    row["object"] = _row_object(value, include_object, version)
    return row


def _row_object(value: KubeObject, include_object: str, version: str) -> KubeObject | None:
    if include_object == "Object":
        return value
    metadata = value["metadata"]
    if include_object == "None" and _INITIAL_EVENTS_END not in (metadata.get("annotations") or ()):
        return None
    return partial_object_metadata(value, version)


def partial_object_metadata(value: KubeObject, version: str) -> KubeObject:
    """Return the metadata of an object alone, as they are inside the real server: there some annotations are fields."""
    metadata = value["metadata"]
    prefix = _FIELDS_AS_ANNOTATIONS.get((value.get("apiVersion", ""), value.get("kind", "")))
    if prefix is not None and "annotations" in metadata:
        annotations = {name: text for name, text in metadata["annotations"].items() if not name.startswith(prefix)}
        metadata = {name: field for name, field in metadata.items() if name != "annotations"}
        metadata |= {"annotations": annotations} if annotations else {}
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
