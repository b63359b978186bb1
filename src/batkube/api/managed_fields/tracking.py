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
from batkube.api.managed_fields.field_sets import LEAF, NOTHING, FieldSet, difference, intersection, union
from batkube.api.managed_fields.managers import (
    UPDATE,
    Entry,
    Manager,
    Managers,
    capped,
    decoded,
    encoded,
    entry_of,
    live_managers,
    reconciled_managers,
)
from batkube.api.managed_fields.reset_fields import reset_fields
from batkube.api.managed_fields.typed_values import FieldComparison, Unfit, compare
from batkube.cluster.kinds import Resource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, rfc3339

#: Fields that are nobody's: the type, and what the server sets (managedfields, stripmeta.go).
_UNOWNED = frozenset(("apiVersion", "kind"))
_UNOWNED_METADATA = frozenset(
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
_UNOWNED_FIELDS: FieldSet = {
    **{f"f:{name}": LEAF for name in sorted(_UNOWNED)},
    "f:metadata": {".": LEAF, **{f"f:{name}": LEAF for name in sorted(_UNOWNED_METADATA)}},
}
#: What a write that changes nothing may differ in all the same.
_NOT_COMPARED = frozenset(("managedFields", "resourceVersion"))

Convert = Callable[[KubeObject, str], tuple[KubeObject, Schema] | None]
"""Gives an object, and its schema, in another version of its kind; None if that version is served no more."""


class Writing(NamedTuple):
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


def updated(
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
    managers = _starting_managers(live, new, subresource)
    if not managers and live is not None:
        return []
    try:
        return encoded(tracked(managers, new, live, Writing(resource, manager, now, subresource, convert)))
    except Unfit:
        return []


def _starting_managers(live: KubeObject | None, new: KubeObject, subresource: str) -> Managers:
    """Return the managers before a write, which may set them itself: an empty list, or one empty entry, resets them."""
    own = new["metadata"].get("managedFields")
    if subresource or own is None or (live is not None and own == live["metadata"].get("managedFields")):
        return live_managers(live)
    if not own or own == [{}]:
        return {}
    try:
        return decoded(own)
    except ValueError:
        return live_managers(live)


def tracked(managers: Managers, new: KubeObject, live: KubeObject | None, writing: Writing) -> Managers:
    """Return the managers after an update: the author has what changed, and nobody else."""
    managers = reconciled_managers(managers, writing.resource)
    changes = Changes(live, new, writing)
    if not changes.any():
        return managers
    managers = {who: kept for who, entry in managers.items() if (kept := changes.left(who, entry)) is not None}
    gained = changes.gained()
    if gained:
        author, version = writing.author(UPDATE), writing.resource.api_version
        before = managers.get(author)
        fields = union(before["fieldsV1"], gained) if before is not None else gained
        managers[author] = entry_of(author, version, rfc3339(writing.now), fields)
    return capped(managers)


class Changes:
    """What a write changes, of what it can change and somebody can own, as the managers of every version see it."""

    def __init__(self, live: KubeObject | None, new: KubeObject, writing: Writing) -> None:
        self._live, self._new, self._convert = live, new, writing.convert
        resource = writing.resource
        self._resets = reset_fields(resource, writing.subresource)
        old = empty_object(resource) if live is None else live
        self._changes = self._between(old, new, resource.schema)
        self._by_version: dict[str, FieldComparison | None] = {resource.api_version: self._changes}

    def _between(self, old: KubeObject, new: KubeObject, schema: Schema) -> FieldComparison:
        skipped = self._resets.top | _UNOWNED
        difference = compare(_ownable(old, skipped), _ownable(new, skipped), schema)
        return difference if self._resets.simple else FieldComparison(*map(self._resets.apart, difference))

    def any(self) -> bool:
        """Tell whether anything changes."""
        return any(self._changes)

    def gained(self) -> FieldSet:
        """Return what the author of an update comes to own."""
        return union(self._changes.modified, self._changes.added)

    def taken(self, entry: Entry) -> FieldSet:
        """Return what of another manager's entry gets another value."""
        changes = self._at(entry["apiVersion"])
        if changes is None:
            return NOTHING
        return intersection(entry["fieldsV1"], union(changes.modified, changes.added))

    def left(self, manager: Manager, entry: Entry) -> Entry | None:
        """Return what is left of another manager's entry; None if nothing is, or its version is served no more."""
        changes = self._at(entry["apiVersion"])
        if changes is None:
            return None
        before = entry["fieldsV1"]
        fields = before
        for gone in changes:
            fields = difference(fields, gone)
        if fields == before:
            return entry if before else None
        return entry_of(manager, entry["apiVersion"], entry.get("time", ""), fields) if fields else None

    def _at(self, version: str) -> FieldComparison | None:
        if version not in self._by_version:
            self._by_version[version] = self._converted(version)
        return self._by_version[version]

    def _converted(self, version: str) -> FieldComparison | None:
        if self._convert is None or self._live is None:
            return self._changes
        old, new = self._convert(self._live, version), self._convert(self._new, version)
        if old is None or new is None:
            return None
        return self._between(old[0], new[0], new[1])


#: By the name of its type. To keep the schemas would keep the server that they belong to.
_EMPTY: dict[str, KubeObject] = {}


def empty_object(resource: Resource) -> KubeObject:
    """Return what a creation is compared with: to the real server a new object is not nothing.

    An empty Pod is `{"metadata": {}, "spec": {"containers": null}, "status": {}}`, with the fields that Go always
    writes, so nobody comes to own `spec` itself by creating one. Custom objects, which have no Go type, have nothing.
    """
    if resource.custom:
        return {}
    name = resource.schema.name
    empty = _EMPTY.get(name)
    if empty is None:
        empty = _EMPTY[name] = zero(resource.schema)
    return empty


def _ownable(value: KubeObject, skipped: frozenset[str]) -> KubeObject:
    out = {name: field for name, field in value.items() if name not in skipped}
    if "metadata" not in skipped:
        metadata = value.get("metadata") or {}
        out["metadata"] = {name: field for name, field in metadata.items() if name not in _UNOWNED_METADATA}
    return out


def ownable_claims(fields: FieldSet) -> FieldSet:
    """Return the set without what is nobody's, for an applier who names it all the same."""
    return difference(fields, _UNOWNED_FIELDS)


def keep_times(new: KubeObject, live: KubeObject) -> None:
    """Give `new` the entries of `live` if they differ in nothing but times, and nothing else changed either.

    So a write that changes nothing stays one: its version is kept. Asked after admission and strategies
    (apiserver, fieldmanager/equality.go).
    """
    before, after = live["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not after or before is after or len(before) != len(after):
        return
    if any(_timeless(one) != _timeless(other) for one, other in zip(before, after, strict=True)):
        return
    if all(new.get(name) == live.get(name) for name in {**new, **live} if name != "metadata"):
        own, known = new["metadata"], live["metadata"]
        if all(own.get(name) == known.get(name) for name in {**own, **known} if name not in _NOT_COMPARED):
            own["managedFields"] = before


def _timeless(entry: Entry) -> Entry:
    return {name: value for name, value in entry.items() if name != "time"}
