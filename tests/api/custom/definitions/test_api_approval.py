"""Approvals of definitions in community groups."""

from __future__ import annotations

from tests.api.custom.definitions.definitions import definition

from batkube.api.custom.definitions.strategy import validate_definition


def test_community_groups_need_an_approval() -> None:
    value = definition(group="x.k8s.io")
    value["metadata"]["name"] = "widgets.x.k8s.io"

    refused = validate_definition(value, None)
    value["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, just a test"}

    assert [error.reason for error in refused] == ["FieldValueRequired"]
    assert validate_definition(value, None) == []
