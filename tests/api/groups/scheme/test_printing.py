"""Tables: what `kubectl get` prints."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.api.groups.printed_cells import NOW

from batkube.api.groups.scheme.printing import printer_of
from batkube.api.printing import tables
from batkube.api.printing.columns import with_descriptions
from batkube.cluster.kinds import KindTable, Resource
from batkube.schedulers.column_descriptions import read_column_descriptions
from conformance import CASES

TABLE = KindTable.builtin()


@pytest.mark.parametrize("resource", TABLE.resources(), ids=lambda resource: resource.group_resource)
def test_an_object_with_nothing_but_a_name_can_be_printed(resource: Resource) -> None:
    """Bookmarks are such objects, so every kind must be printable from one."""
    printer = printer_of(resource)

    cells = printer.cells({"metadata": {"name": "x"}}, NOW)

    assert "x" in cells
    assert len(cells) == len(printer.columns) + (resource.plural == "ipaddresses")


def _resource_of(path: str) -> Resource | None:
    parts = path.strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    return TABLE.resource(group, version, (rest[2:] if rest[0] == "namespaces" and len(rest) > 2 else rest)[0])


def _ageless(cell: Any) -> Any:  # noqa: ANN401 - any JSON
    return re.sub(r"<invalid>|(?:\d+[smhd])+|\d{4}-\S+Z", "…", cell) if isinstance(cell, str) else cell


def test_recorded_objects_are_printed_as_by_kube_apiserver(tmp_path: Path) -> None:
    """Ages are not compared, and column descriptions only if Kubernetes' source is available."""
    compared, words = 0, read_column_descriptions("v1.34.4", tmp_path)
    for case in sorted((CASES / "table").glob("*.json")):
        objects: dict[tuple[str, str], dict[str, Any]] = {}
        for step in json.loads(case.read_text(encoding="utf-8"))["steps"]:
            body = step.get("response", {}).get("body")
            resource = _resource_of(step["request"]["path"]) if isinstance(body, dict) else None
            if resource is None or not isinstance(body, dict) or step["request"]["path"].endswith("/scale"):
                continue
            if body["kind"] != "Table":
                objects[resource.plural, body.get("metadata", {}).get("name", "")] = body
                continue
            columns = [one if words else {**one, "description": ""} for one in body["columnDefinitions"]]
            assert with_descriptions(printer_of(resource), resource.storage, words).columns == columns
            names = [column["name"] for column in body["columnDefinitions"]].index("Name")
            for row in body["rows"] or ():
                value = objects.get((resource.plural, row["cells"][names]))
                if value is not None:
                    made = tables.make_table(printer_of(resource), [value], NOW, metadata={})["rows"][0]
                    assert [*map(_ageless, made["cells"])] == [*map(_ageless, row["cells"])], (case.name, value)
                    assert made.get("conditions") == row.get("conditions")
                    compared += 1
    assert compared > 100
