"""Printer of custom resources: each column of the definition is a JSONPath with a type.

Kubernetes: apiextensions-apiserver/pkg/registry/customresource/tableconvertor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from batkube.api.groups.scheme.printing import PRINTERS
from batkube.api.printing.ages import time_since_any_format
from batkube.api.printing.columns import NAME_COLUMN
from batkube.api.printing.json_paths import BadJsonPath, Json, JsonPath, PathNotApplicable
from batkube.api.printing.printers import Column, Printer, column
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant
from batkube.text.go_format import go_value

#: The columns of a version without printer columns (apiextensions: getColumnsForVersion).
_AGE_COLUMN = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
#: The columns of a custom resource's Scale (apiextensions: getScaleColumnsForVersion).
SCALE_COLUMNS = (
    {"name": "Desired", "type": "integer", "description": "Number of desired replicas", "jsonPath": ".spec.replicas"},
    {
        "name": "Available",
        "type": "integer",
        "description": "Number of actual replicas",
        "jsonPath": ".status.replicas",
    },
    _AGE_COLUMN,
)
#: The characters that Go's encoding/json escapes for HTML.
_HTML_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def custom_printer(definitions: Sequence[Mapping[str, Any]] | None) -> Printer:
    """Return the printer for the `additionalPrinterColumns` of a version.

    As in kube-apiserver, columns after a path that does not parse are dropped.
    """
    columns, paths = [NAME_COLUMN], []
    for definition in definitions or (_AGE_COLUMN,):
        path_text = definition["jsonPath"]
        try:
            paths.append(JsonPath(path_text))
        except BadJsonPath:
            break
        description = definition.get("description", "")
        if not description and definition is not _AGE_COLUMN:
            description = f"Custom resource definition column (in JSONPath format): {path_text}"
        form, priority = definition.get("format", ""), int(definition.get("priority", 0))
        columns.append(column(definition["name"], definition["type"], form, priority, description))
    return Printer(columns, _PrinterColumns(columns[1:], paths))


def scale_printer(resource: Resource) -> Printer:
    """Return the printer of a kind's Scale."""
    return custom_printer(SCALE_COLUMNS) if resource.custom else PRINTERS["scales.autoscaling"]


class _PrinterColumns:
    """Computes the cells of a custom resource."""

    def __init__(self, columns: list[Column], paths: list[JsonPath]) -> None:
        self._columns = [(definition["type"], path) for definition, path in zip(columns, paths, strict=True)]

    def __call__(self, value: KubeObject, now: Instant) -> list[Any]:
        return [value["metadata"].get("name", ""), *(_cell(kind, path, value, now) for kind, path in self._columns)]


def _cell(kind: str, path: JsonPath, value: KubeObject, now: Instant) -> Json:
    """Return the path's first value, converted to the column's type; None if there is none or the type differs."""
    try:
        values = path.evaluate(value)
    except PathNotApplicable:
        return None
    first = values[0] if values else None
    match kind, first:
        case _, None:
            return None
        case "string", _:
            return _text(first)
        case "date", str():
            return time_since_any_format(first, now)
        case "boolean", bool():
            return first
        case "integer" | "number", bool():
            return None
        case "integer", int():
            return first
        case "integer", float() if math.isfinite(first):
            return int(first)
        case "number", int() | float():
            return float(first)
    return None


def _text(value: Json) -> str:
    """Format a value as Go prints it: lists and maps as HTML-escaped JSON, scalars without quotes."""
    if not isinstance(value, dict | list):
        return go_value(value)
    text = msgspec.json.encode(value, order="sorted").decode()
    return text.translate(_HTML_ESCAPES)
