"""Validation of PersistentVolumeClaims (concepts/storage/persistent-volumes)."""

from __future__ import annotations

import pytest
from tests.api.groups.creation_errors import errors

CLAIM = "PersistentVolumeClaim/pvc1"


def test_a_valid_claim_has_no_errors() -> None:
    assert errors(CLAIM) == []


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("spec.accessModes", [], "spec.accessModes"),
        ("spec.accessModes", ["ReadWriteAlways"], "spec.accessModes"),
        ("spec.resources.requests", {}, "spec.resources[storage]"),
        ("spec.resources.requests.storage", "0", "spec.resources[storage]"),
        ("spec.volumeMode", "Tape", "spec.volumeMode"),
        ("spec.storageClassName", "No_Name", "spec.storageClassName"),
        ("spec.dataSource", {"kind": "Pod", "name": "x"}, "spec.dataSource"),
    ],
)
def test_a_wrong_field_of_a_claim_is_reported(path: str, value: object, field: str) -> None:
    assert [where for where, _ in errors(CLAIM, {path: value})] == [field]


def test_read_write_once_pod_excludes_all_other_access_modes() -> None:
    assert errors(CLAIM, {"spec.accessModes": ["ReadWriteOncePod"]}) == []
    assert errors(CLAIM, {"spec.accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]}) == [
        ("spec.accessModes", "Forbidden: may not use ReadWriteOncePod with other access modes")
    ]
