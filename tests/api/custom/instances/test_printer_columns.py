"""Printer columns of custom resources, and of scales."""

from __future__ import annotations

import msgspec
import pytest
from tests.api.groups.printed_cells import NOW

from batkube.api.custom.instances.printer_columns import custom_printer, scale_printer
from batkube.cluster.kinds import KindTable

TABLE = KindTable.builtin()
WIDGET = {
    "metadata": {"name": "w", "creationTimestamp": "2026-11-15T20:39:55Z"},
    "spec": {"size": 3, "ratio": 0.5, "tags": ["a", "b"], "on": True, "a.b": "dotted"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("string", ".spec.size", "3"),
        ("string", ".spec.ratio", "0.5"),
        ("string", ".spec.tags", '["a","b"]'),
        ("string", ".spec.on", "true"),
        ("string", ".spec.missing", None),
        ("integer", ".spec.size", 3),
        ("integer", ".spec.ratio", 0),
        ("integer", ".spec.on", None),
        ("number", ".spec.size", 3.0),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.size", None),
        ("date", ".metadata.creationTimestamp", "5s"),
        ("date", ".metadata.name", "<invalid>"),
        ("date", ".spec.size", None),
        ("string", '.status.conditions[?(@.type=="Ready")].status', "True"),
        ("string", ".status.conditions[?(@.type == 'Old')].status", "False"),
        ("string", ".spec.tags[9]", None),
        ("string", ".spec.tags[-1]", "b"),
        ("string", ".spec.tags[*]", "a"),
        ("string", r".spec.a\.b", "dotted"),
        ("string", ".spec['a.b']", None),
    ],
)
def test_a_custom_column_prints_values_of_its_type(kind: str, path: str, cell: object) -> None:
    printer = custom_printer([{"name": "C", "type": kind, "jsonPath": path}])

    assert printer.cells(WIDGET, NOW) == ["w", cell]
    assert type(printer.cells(WIDGET, NOW)[1]) is type(cell)


def test_a_custom_resource_without_columns_prints_its_age() -> None:
    printer = custom_printer(None)

    assert [column["name"] for column in printer.columns] == ["Name", "Age"]
    assert printer.cells(WIDGET, NOW) == ["w", "5s"]


def test_a_scale_is_printed_equally_for_built_in_and_custom_kinds() -> None:
    deployments = TABLE.resource("apps", "v1", "deployments")
    assert deployments is not None
    custom = msgspec.structs.replace(deployments, custom=True)
    scale = {"metadata": WIDGET["metadata"], "spec": {"replicas": 3}, "status": {"replicas": 1}}

    printers = [scale_printer(resource) for resource in (deployments, custom)]

    assert [printer.cells(scale, NOW) for printer in printers] == [["w", 3, 1, "5s"]] * 2
    assert [[column["name"] for column in printer.columns] for printer in printers] == [
        ["Name", "Desired", "Available", "Age"]
    ] * 2


def test_columns_after_an_invalid_path_are_dropped() -> None:
    good = {"name": "A", "type": "string", "jsonPath": ".spec.size", "priority": 1}
    bad = {"name": "B", "type": "string", "jsonPath": ".spec[", "description": "x"}

    printer = custom_printer([good, bad, good])

    assert [(column["name"], column["priority"]) for column in printer.columns] == [("Name", 0), ("A", 1)]
    assert printer.columns[1]["description"] == "Custom resource definition column (in JSONPath format): .spec.size"
