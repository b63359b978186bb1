"""Tables of objects."""

from __future__ import annotations

from typing import Any

from tests.api.groups.printed_cells import NOW

from batkube.api.groups.scheme.printing import DEFAULT_PRINTER, PRINTERS
from batkube.api.printing import tables


def test_only_metadata_is_included_by_default() -> None:
    value = {"metadata": {"name": "a"}, "data": {}}

    def included(what: str) -> Any:  # noqa: ANN401 - any JSON
        return tables.make_table(DEFAULT_PRINTER, [value], NOW, metadata={}, include_object=what)["rows"][0]["object"]

    assert included("None") is None
    assert included("Object") is value
    assert included("") == included("Metadata")
    assert included("") == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}


def test_the_bookmark_that_ends_initial_events_always_has_its_object() -> None:
    metadata = {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}

    table = tables.make_table(
        PRINTERS["configmaps"], [{"metadata": metadata}], NOW, metadata=metadata, include_object="None", headers=False
    )

    assert table["columnDefinitions"] is None
    assert table["metadata"] == {"resourceVersion": "7"}
    assert table["rows"][0]["cells"] == ["", 0, "<unknown>"]
    assert table["rows"][0]["object"]["metadata"] is metadata


def test_an_unknown_value_of_include_object_is_rejected() -> None:
    assert tables.include_problem("Metadata") is None
    assert "must be 'Metadata', 'Object', 'None', or empty" in (tables.include_problem("Bogus") or "")
