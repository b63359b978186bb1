"""Updates of metadata."""

from __future__ import annotations

from tests.api.groups.object_updates import OBJECTS, changed, changes, filled


def test_an_immutable_metadata_field_is_reported_twice() -> None:
    old = filled(OBJECTS["ConfigMap/cm"])

    errors = changes(changed(old, "metadata.uid", "w"), old)

    assert errors == [("metadata.uid", 'Invalid value: "w": field is immutable')] * 2


def test_finalizers_cannot_be_added_to_a_deleted_object() -> None:
    old = changed(filled(OBJECTS["ConfigMap/cm"]), "metadata.deletionTimestamp", "2020-01-01T00:00:00Z")

    errors = changes(changed(old, "metadata.finalizers", ["a.b/c", "a.b/d"]), old)

    assert {message for _, message in errors} == {
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        '[]string{"a.b/c", "a.b/d"}'
    }
