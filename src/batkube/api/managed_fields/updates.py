"""Field ownership of creates, updates and patches: `metadata.managedFields`.

Every client that writes is a manager. A create, update or patch makes its manager the sole owner of the fields that it
changes; fields that it removes have no owner. Appliers (`server_side_apply`) own the fields in their configuration, and
share them with managers that set the same value.

This code runs in every write. It therefore works on the encoded form of the sets, visits changed fields only, and
shares equal sets and entries between objects.

Kubernetes: apimachinery/pkg/util/managedfields; the rules themselves in structured-merge-diff, merge/update.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batkube.api.decoding.objects import zero
from batkube.api.managed_fields.field_sets import EMPTY_SET, LEAF, FieldSet, difference, intersection, union
from batkube.api.managed_fields.managers import (
    UPDATE,
    Entry,
    Manager,
    Managers,
    cap_updaters,
    decode_managers,
    encode_managers,
    entry_of,
    live_managers,
    reconcile_managers,
)
from batkube.api.managed_fields.reset_fields import reset_fields
from batkube.api.managed_fields.typed_values import FieldComparison, SchemaMismatch, compare
from batkube.cluster.kinds import Resource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, rfc3339

#: Fields without an owner: the type, and the fields that the server sets (managedfields, stripmeta.go).
_UNTRACKED = frozenset(("apiVersion", "kind"))
_UNTRACKED_METADATA = frozenset(
    (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    )
)
_UNTRACKED_FIELDS: FieldSet = {
    **{f"f:{name}": LEAF for name in sorted(_UNTRACKED)},
    "f:metadata": {".": LEAF, **{f"f:{name}": LEAF for name in sorted(_UNTRACKED_METADATA)}},
}
#: Fields that may differ although a write changes nothing.
_NOT_COMPARED = frozenset(("managedFields", "resourceVersion"))

Convert = Callable[[KubeObject, str], tuple[KubeObject, Schema] | None]
"""Converts an object to another version and returns it with its schema; None if that version is no longer served."""


class WriteContext(NamedTuple):
    """The context of one write, as far as ownership depends on it."""

    resource: Resource
    #: The manager's name.
    manager: str
    now: Instant
    subresource: str = ""
    #: If None, all versions have the same fields.
    convert: Convert | None = None

    def author(self, operation: str) -> Manager:
        """Return the manager of this write."""
        version = self.resource.api_version if operation == UPDATE else ""
        return Manager(self.manager or "unknown", operation, version, self.subresource)


def entries_after_update(
    new: KubeObject,
    live: KubeObject | None,
    resource: Resource,
    *,
    manager: str,
    now: Instant,
    subresource: str = "",
    convert: Convert | None = None,
) -> list[Entry]:
    """Return the managedFields after a create, update or patch turns `live` (None for a create) into `new`.

    Both are in the version of `resource`. Call this before admission and strategies change `new`, as kube-apiserver
    does: fields that they set have no owner.
    """
    managers = _managers_before(live, new, subresource)
    if not managers and live is not None:
        return []
    try:
        return encode_managers(
            managers_after_update(managers, new, live, WriteContext(resource, manager, now, subresource, convert))
        )
    except SchemaMismatch:
        return []


def _managers_before(live: KubeObject | None, new: KubeObject, subresource: str) -> Managers:
    """Return the managers before a write; an empty list, or one empty entry, in the write itself resets them."""
    own = new["metadata"].get("managedFields")
    if subresource or own is None or (live is not None and own == live["metadata"].get("managedFields")):
        return live_managers(live)
    if not own or own == [{}]:
        return {}
    try:
        return decode_managers(own)
    except ValueError:
        return live_managers(live)


def managers_after_update(
    managers: Managers, new: KubeObject, live: KubeObject | None, writing: WriteContext
) -> Managers:
    """Return the managers after an update: its author becomes the sole owner of all changed fields."""
    managers = reconcile_managers(managers, writing.resource)
    changes = OwnershipChanges(live, new, writing)
    if not changes.has_changes():
        return managers
    managers = {
        manager: remaining
        for manager, entry in managers.items()
        if (remaining := changes.remaining_entry(manager, entry)) is not None
    }
    gained = changes.gained_fields()
    if gained:
        author, version = writing.author(UPDATE), writing.resource.api_version
        before = managers.get(author)
        fields = union(before["fieldsV1"], gained) if before is not None else gained
        managers[author] = entry_of(author, version, rfc3339(writing.now), fields)
    return cap_updaters(managers)


class OwnershipChanges:
    """The changes of a write, without reset and untracked fields, as the managers of each version see them."""

    def __init__(self, live: KubeObject | None, new: KubeObject, writing: WriteContext) -> None:
        self._live, self._new, self._convert = live, new, writing.convert
        resource = writing.resource
        self._resets = reset_fields(resource, writing.subresource)
        old = empty_object(resource) if live is None else live
        self._changes = self._compare(old, new, resource.schema)
        self._by_version: dict[str, FieldComparison | None] = {resource.api_version: self._changes}

    def _compare(self, old: KubeObject, new: KubeObject, schema: Schema) -> FieldComparison:
        skipped = self._resets.top_level | _UNTRACKED
        difference = compare(_without_untracked(old, skipped), _without_untracked(new, skipped), schema)
        return (
            difference
            if self._resets.is_top_level_only
            else FieldComparison(*map(self._resets.exclude_from, difference))
        )

    def has_changes(self) -> bool:
        """Return whether any field changes."""
        return any(self._changes)

    def gained_fields(self) -> FieldSet:
        """Return the fields that the author of an update becomes the owner of."""
        return union(self._changes.modified, self._changes.added)

    def conflicting_fields(self, entry: Entry) -> FieldSet:
        """Return the fields of another manager's entry whose values change."""
        changes = self._in_version(entry["apiVersion"])
        if changes is None:
            return EMPTY_SET
        return intersection(entry["fieldsV1"], union(changes.modified, changes.added))

    def remaining_entry(self, manager: Manager, entry: Entry) -> Entry | None:
        """Return what remains of another manager's entry; None if it is empty, or its version is no longer served."""
        changes = self._in_version(entry["apiVersion"])
        if changes is None:
            return None
        before = entry["fieldsV1"]
        fields = before
        for removed in changes:
            fields = difference(fields, removed)
        if fields == before:
            return entry if before else None
        return entry_of(manager, entry["apiVersion"], entry.get("time", ""), fields) if fields else None

    def _in_version(self, version: str) -> FieldComparison | None:
        if version not in self._by_version:
            self._by_version[version] = self._compare_in_version(version)
        return self._by_version[version]

    def _compare_in_version(self, version: str) -> FieldComparison | None:
        if self._convert is None or self._live is None:
            return self._changes
        old, new = self._convert(self._live, version), self._convert(self._new, version)
        if old is None or new is None:
            return None
        return self._compare(old[0], new[0], new[1])


#: By type name: keeping the schemas would keep the server alive to which they belong.
_EMPTY_OBJECTS: dict[str, KubeObject] = {}


def empty_object(resource: Resource) -> KubeObject:
    """Return the object with which a created one is compared: the zero value of its Go type.

    An empty Pod is `{"metadata": {}, "spec": {"containers": null}, "status": {}}`, because Go always writes these
    fields. Creating a pod therefore does not make its manager the owner of `spec` itself. Custom objects have no Go
    type, and compare with an empty object.
    """
    if resource.custom:
        return {}
    name = resource.schema.name
    empty = _EMPTY_OBJECTS.get(name)
    if empty is None:
        empty = _EMPTY_OBJECTS[name] = zero(resource.schema)
    return empty


def _without_untracked(value: KubeObject, skipped: frozenset[str]) -> KubeObject:
    out = {name: field for name, field in value.items() if name not in skipped}
    if "metadata" not in skipped:
        metadata = value.get("metadata") or {}
        out["metadata"] = {name: field for name, field in metadata.items() if name not in _UNTRACKED_METADATA}
    return out


def tracked_fields(fields: FieldSet) -> FieldSet:
    """Return the set without the fields that never have an owner; an applier may specify them nevertheless."""
    return difference(fields, _UNTRACKED_FIELDS)


def keep_unchanged_timestamps(new: KubeObject, live: KubeObject) -> None:
    """Reuse the entries of `live` in `new` if they differ only in times, and nothing else has changed.

    A write without changes then keeps the resourceVersion. Call this after admission and strategies (apiserver,
    fieldmanager/equality.go).
    """
    before, after = live["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not after or before is after or len(before) != len(after):
        return
    if any(_without_time(first) != _without_time(second) for first, second in zip(before, after, strict=True)):
        return
    if all(new.get(name) == live.get(name) for name in {**new, **live} if name != "metadata"):
        metadata, live_metadata = new["metadata"], live["metadata"]
        if all(
            metadata.get(name) == live_metadata.get(name)
            for name in {**metadata, **live_metadata}
            if name not in _NOT_COMPARED
        ):
            metadata["managedFields"] = before


def _without_time(entry: Entry) -> Entry:
    return {name: value for name, value in entry.items() if name != "time"}
