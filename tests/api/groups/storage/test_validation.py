"""Validation of StorageClasses and VolumeAttachments (concepts/storage/storage-classes)."""

from __future__ import annotations

import pytest
from tests.api.groups.creation_errors import errors
from tests.api.groups.object_updates import OBJECTS, changed, changes, filled

CLASS = "StorageClass/sc1"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("provisioner", "", "provisioner"),
        ("reclaimPolicy", "Recycle", "reclaimPolicy"),
        ("volumeBindingMode", "Later", "volumeBindingMode"),
        ("parameters", {"": "x"}, "parameters"),
        ("allowedTopologies.0.matchLabelExpressions.0.values", [], "values"),
        ("allowedTopologies.0.matchLabelExpressions.0.values", ["b", "b"], "values[1]"),
    ],
)
def test_a_wrong_field_of_a_storage_class_is_reported(path: str, value: object, field: str) -> None:
    [(where, _)] = errors(CLASS, {path: value})

    assert where == (f"allowedTopologies[0].matchLabelExpressions[0].{field}" if "values" in field else field)


@pytest.mark.parametrize("field", ["provisioner", "reclaimPolicy", "volumeBindingMode", "parameters"])
def test_a_storage_class_is_immutable_except_for_expansion(field: str) -> None:
    old = filled(OBJECTS[CLASS])
    values = {
        "provisioner": "x.y/z",
        "reclaimPolicy": "Retain",
        "volumeBindingMode": "WaitForFirstConsumer",
        "parameters": {},
    }

    assert [where for where, _ in changes(changed(old, field, values[field]), old)] == [field]
    assert changes(changed(old, "allowVolumeExpansion", True), old) == []


def test_an_attachment_has_exactly_one_source() -> None:
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    [(field, message)] = errors("VolumeAttachment/va", {"spec.source": {}})
    assert (field, message) == ("spec.source", f"Required value: {detail}")

    inline = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    [(field, message)] = errors("VolumeAttachment/va", {"spec.source.inlineVolumeSpec": inline})
    assert (field, message) == ("spec.source", f"Forbidden: {detail}")
