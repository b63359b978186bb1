"""Tables: objects as rows of cells, as `kubectl get` requests them.

A Table is the answer to a request that accepts `application/json;as=Table;v=v1;g=meta.k8s.io`, for one object, a list,
or each event of a watch.

Kubernetes: apiserver/pkg/endpoints/handlers/response.go, asTable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from batkube.api.printing.printers import Printer
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

#: The values of `includeObject`; empty means Metadata.
_INCLUDE_OBJECT_VALUES = ("None", "Metadata", "Object", "")
#: Prefixes of annotations in which a version of a kind keeps fields that it does not have.
_FIELDS_AS_ANNOTATIONS = {
    ("apps/v1", "DaemonSet"): "deprecated.daemonset.template.generation",
    ("autoscaling/v1", "HorizontalPodAutoscaler"): "autoscaling.alpha.kubernetes.io/",
}
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def include_problem(include_object: str) -> str | None:
    """Return the error of the query parameter `includeObject`, for an answer with 400."""
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
    """Return the Table of `objects`, which have their resourceVersion.

    `metadata` is that of the list (resourceVersion, continue, remainingItemCount), or of a single object, of which only
    resourceVersion is used. Only the first event of a watch has `headers`. `version` is that of meta.k8s.io.
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
    """Return the metadata of an object without annotations that are fields in kube-apiserver's internal version."""
    metadata = value["metadata"]
    prefix = _FIELDS_AS_ANNOTATIONS.get((value.get("apiVersion", ""), value.get("kind", "")))
    if prefix is not None and "annotations" in metadata:
        annotations = {name: text for name, text in metadata["annotations"].items() if not name.startswith(prefix)}
        metadata = {name: field for name, field in metadata.items() if name != "annotations"}
        metadata |= {"annotations": annotations} if annotations else {}
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
