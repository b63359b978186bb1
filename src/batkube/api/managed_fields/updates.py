"""Who owns which field of an object: `metadata.managedFields`.

Every writer is a manager. What a create, update or patch changes becomes its manager's and nobody else's; what
it removes is nobody's. Appliers (`applying.py`) own what their configuration says, and share it with others who
say the same. Kubernetes: apimachinery/pkg/util/managedfields; the rules themselves in structured-merge-diff,
merge/update.go.

This runs in every write, so it works on the stored form of the sets, looks only at what changed, and shares equal
sets and entries between objects.
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

#: Fields that are nobody's: the type, and what the server sets (managedfields, stripmeta.go).
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
#: What a write that changes nothing may differ in all the same.
_NOT_COMPARED = frozenset(("managedFields", "resourceVersion"))

Convert = Callable[[KubeObject, str], tuple[KubeObject, Schema] | None]
"""Gives an object, and its schema, in another version of its kind; None if that version is served no more."""


class WriteContext(NamedTuple):
    """One write, as far as ownership depends on it."""

    resource: Resource
    #: The name of who writes.
    manager: str
    now: Instant
    subresource: str = ""
    #: Without it all versions are taken to be alike.
    convert: Convert | None = None

    def author(self, operation: str) -> Manager:
        """Return the manager whose write it is."""
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
    """Return the entries of an object that a create, update or patch turns from `live` (None: created) into `new`.

    Both are in the version of `resource`. To be asked before admission and strategies change `new`, as the real server
    does: what they set is nobody's.
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
    """Return the managers before a write, which may set them itself: an empty list, or one empty entry, resets them."""
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
    """Return the managers after an update: the author has what changed, and nobody else."""
    managers = reconcile_managers(managers, writing.resource)
    changes = OwnershipChanges(live, new, writing)
    if not changes.has_changes():
        return managers
    managers = {
        who: kept for who, entry in managers.items() if (kept := changes.remaining_entry(who, entry)) is not None
    }
    gained = changes.gained_fields()
    if gained:
        author, version = writing.author(UPDATE), writing.resource.api_version
        before = managers.get(author)
        fields = union(before["fieldsV1"], gained) if before is not None else gained
        managers[author] = entry_of(author, version, rfc3339(writing.now), fields)
    return cap_updaters(managers)


class OwnershipChanges:
    """What a write changes, of what it can change and somebody can own, as the managers of every version see it."""

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
        """Tell whether anything changes."""
        return any(self._changes)

    def gained_fields(self) -> FieldSet:
        """Return what the author of an update comes to own."""
        return union(self._changes.modified, self._changes.added)

    def conflicting_fields(self, entry: Entry) -> FieldSet:
        """Return what of another manager's entry gets another value."""
        changes = self._in_version(entry["apiVersion"])
        if changes is None:
            return EMPTY_SET
        return intersection(entry["fieldsV1"], union(changes.modified, changes.added))

    def remaining_entry(self, manager: Manager, entry: Entry) -> Entry | None:
        """Return what is left of another manager's entry; None if nothing is, or its version is served no more."""
        changes = self._in_version(entry["apiVersion"])
        if changes is None:
            return None
        before = entry["fieldsV1"]
        fields = before
        for gone in changes:
            fields = difference(fields, gone)
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


#: By the name of its type. To keep the schemas would keep the server that they belong to.
_EMPTY_OBJECTS: dict[str, KubeObject] = {}


def empty_object(resource: Resource) -> KubeObject:
    """Return what a creation is compared with: to the real server a new object is not nothing.

    An empty Pod is `{"metadata": {}, "spec": {"containers": null}, "status": {}}`, with the fields that Go always
    writes, so nobody comes to own `spec` itself by creating one. Custom objects, which have no Go type, have nothing.
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
    """Return the set without what is nobody's, for an applier who names it all the same."""
    return difference(fields, _UNTRACKED_FIELDS)


def keep_unchanged_timestamps(new: KubeObject, live: KubeObject) -> None:
    """Give `new` the entries of `live` if they differ in nothing but times, and nothing else changed either.

    So a write that changes nothing stays one: its version is kept. Asked after admission and strategies
    (apiserver, fieldmanager/equality.go).
    """
    before, after = live["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not after or before is after or len(before) != len(after):
        return
    if any(_without_time(one) != _without_time(other) for one, other in zip(before, after, strict=True)):
        return
    if all(new.get(name) == live.get(name) for name in {**new, **live} if name != "metadata"):
        own, known = new["metadata"], live["metadata"]
        if all(own.get(name) == known.get(name) for name in {**own, **known} if name not in _NOT_COMPARED):
            own["managedFields"] = before


def _without_time(entry: Entry) -> Entry:
    return {name: value for name, value in entry.items() if name != "time"}
