"""Server-side apply: a manager applies a configuration, and becomes the owner of its fields.

The configuration is merged into the live object. Fields of the manager's last configuration that the new one omits are
removed, unless another manager owns them too. A field that another manager owns with a different value is a conflict;
with `force` the applier takes the field over.

Kubernetes: structured-merge-diff, merge/update.go; apimachinery/pkg/util/managedfields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from batkube.api.managed_fields.field_sets import (
    EMPTY_SET,
    FieldSet,
    contains,
    difference,
    escaped_json,
    intersection,
    path_text,
    paths,
    union,
)
from batkube.api.managed_fields.managers import (
    APPLY,
    UPDATE,
    Entry,
    Manager,
    Managers,
    encode_managers,
    entry_of,
    live_managers,
    reconcile_managers,
)
from batkube.api.managed_fields.reset_fields import reset_fields
from batkube.api.managed_fields.typed_merge import ensure_named_fields, merge, remove_fields
from batkube.api.managed_fields.typed_validation import validate
from batkube.api.managed_fields.typed_values import SchemaMismatch, compare, to_field_set
from batkube.api.managed_fields.updates import (
    Convert,
    OwnershipChanges,
    WriteContext,
    empty_object,
    managers_after_update,
    tracked_fields,
)
from batkube.cluster.kinds import Resource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, rfc3339
from batkube.text.go_format import go_quote

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which client-side `kubectl apply` stores the configuration."""

_KUBECTL = "kubectl"
_BEFORE_FIRST_APPLY = "before-first-apply"
_ANNOTATIONS_MAX_BYTES = 256 * 1024


class BadApplyConfiguration(Exception):
    """The configuration cannot be applied at all (400 BadRequest)."""


class Conflict(NamedTuple):
    """A field that another manager owns with another value."""

    manager: Manager
    path: tuple[str, ...]

    @property
    def message(self) -> str:
        """`conflict with "m1" using apps/v1`."""
        return f"conflict with {_manager_text(self.manager)}"

    @property
    def field(self) -> str:
        """The path as error messages write it."""
        return path_text(self.path)


class Conflicts(Exception):
    """Other managers own fields that the configuration would change (409 Conflict)."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        self.conflicts = conflicts
        super().__init__(self._message())

    def causes(self) -> list[dict[str, str]]:
        """Return the causes in the Status."""
        return [
            {"reason": "FieldManagerConflict", "message": conflict.message, "field": conflict.field}
            for conflict in self.conflicts
        ]

    def _message(self) -> str:
        if len(self.conflicts) == 1:
            only = self.conflicts[0]
            return f"Apply failed with 1 conflict: {only.message}: {only.field}"
        by_manager: dict[Manager, list[Conflict]] = {}
        for conflict in self.conflicts:
            by_manager.setdefault(conflict.manager, []).append(conflict)
        lines = []
        for manager, conflicts in by_manager.items():
            lines.append(f"conflicts with {_manager_text(manager)}:")
            lines += [f"- {conflict.field}" for conflict in conflicts]
        return f"Apply failed with {len(self.conflicts)} conflicts: " + "\n".join(lines)


def _manager_text(manager: Manager) -> str:
    text = go_quote(manager.name)
    if manager.subresource:
        text += f" with subresource {go_quote(manager.subresource)}"
    return f"{text} using {manager.api_version}" if manager.operation == UPDATE else text


class ApplyResult(NamedTuple):
    """The result of an apply."""

    #: The live object itself if the configuration changes nothing; else a new object, which the caller may modify and
    #: must decode (it may contain nulls and unusual notations of the configuration) and default.
    object: KubeObject
    #: Its managedFields; they may change even if the object does not.
    entries: list[Entry]


def apply_configuration(
    config: KubeObject,
    live: KubeObject | None,
    resource: Resource,
    *,
    manager: str,
    now: Instant,
    force: bool = False,
    subresource: str = "",
    convert: Convert | None = None,
) -> ApplyResult:
    """Apply the configuration `config`, as the client wrote it, to `live` (None to create the object).

    `live` contains its resourceVersion, since a configuration may, too. Raises BadApplyConfiguration, SchemaMismatch or
    Conflicts.
    """
    _check_type(config, resource)
    apply = _Apply(config, live, WriteContext(resource, manager, now, subresource, convert))
    try:
        outcome = apply.apply(force=force)
    except Conflicts as conflicts:
        if manager != _KUBECTL:
            raise
        left = apply.without_client_side_conflicts(conflicts)
        if left:
            raise Conflicts(left) from None
        outcome = apply.apply(force=True)
    if manager == _KUBECTL:
        return _update_last_applied(outcome, config, live)
    return outcome


def _check_type(config: KubeObject, resource: Resource) -> None:
    """Reject a configuration of another kind or version than the URL's."""
    group, _, version = str(config.get("apiVersion") or "").rpartition("/")
    kind = str(config.get("kind") or "")
    if (group, version, kind) != (resource.group, resource.version, resource.kind):
        raise BadApplyConfiguration(f"invalid object type: {group}/{version}, Kind={kind}")
    if _metadata(config).get("managedFields") is not None:
        raise BadApplyConfiguration("metadata.managedFields must be nil")


def _metadata(config: KubeObject) -> dict[str, Any]:
    """Return the metadata of a configuration, which has not been validated yet."""
    metadata = config.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


class _Apply:
    """The state of one apply."""

    def __init__(self, config: KubeObject, live: KubeObject | None, writing: WriteContext) -> None:
        self._config, self._live, self._writing = config, live, writing
        self._resource = resource = writing.resource
        self._author = writing.author(APPLY)
        self._managers = self._current_managers()
        metadata = _metadata(config)
        place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        try:
            validate(config, resource.schema)
        except SchemaMismatch as problem:
            title = f"{place}; {resource.group}/{resource.version}, Kind={resource.kind}"
            raise SchemaMismatch(f"failed to create typed patch object ({title}): {problem}") from None

    def _current_managers(self) -> Managers:
        """Return the managers of the live object; an object without any gets a manager for its current fields."""
        managers = live_managers(self._live)
        if managers or self._live is None:
            return reconcile_managers(managers, self._resource)
        return managers_after_update({}, self._live, None, self._writing._replace(manager=_BEFORE_FIRST_APPLY))

    def apply(self, *, force: bool) -> ApplyResult:
        """Return the object and its managers after the apply."""
        author, version, schema = self._author, self._resource.api_version, self._resource.schema
        before = empty_object(self._resource) if self._live is None else self._live
        claims = reset_fields(self._resource, self._writing.subresource).exclude_from(
            to_field_set(self._config, schema)
        )
        last = self._managers.get(author)
        time = last.get("time", "") if last is not None else ""
        managers = {**self._managers, author: entry_of(author, version, time, claims)}
        after: KubeObject = merge(before, self._config, schema)
        if last is not None:
            after = self._prune_removed(after, managers, last)
        managers = self._take_ownership(after, managers, force=force)
        same = self._live is not None and after == self._live
        owned = tracked_fields(claims)
        if owned:
            managers[author] = entry_of(author, version, time if same else rfc3339(self._writing.now), owned)
        else:
            del managers[author]
        if self._live is not None and same:
            return ApplyResult(self._live, encode_managers(managers))
        return ApplyResult(msgspec.json.decode(msgspec.json.encode(after)), encode_managers(managers))

    def _take_ownership(self, after: KubeObject, managers: Managers, *, force: bool) -> Managers:
        """Remove the applied fields from the other managers; without `force`, report them as conflicts."""
        changes = OwnershipChanges(self._live, after, self._writing)
        others = {manager: entry for manager, entry in managers.items() if manager != self._author}
        conflicts = [
            Conflict(manager, path)
            for manager in sorted(others, key=lambda each: each.identifier)
            for path in paths(changes.conflicting_fields(others[manager]))
        ]
        if conflicts and not force:
            raise Conflicts(conflicts)
        left = {
            manager: remaining
            for manager, entry in others.items()
            if (remaining := changes.remaining_entry(manager, entry))
        }
        return {**left, self._author: managers[self._author]}

    # Removing fields that are no longer applied

    def _convert(self, value: KubeObject, version: str) -> tuple[KubeObject, Schema] | None:
        convert = self._writing.convert
        if convert is None or value.get("apiVersion") == version:
            return value, self._resource.schema
        return convert(value, version)

    def _prune_removed(self, after: KubeObject, managers: Managers, last: Entry) -> KubeObject:
        """Remove fields that this manager applied last time and not now, unless another manager owns parts of them."""
        version = last["apiVersion"]
        seen = self._convert(after, version)
        if seen is None or not last["fieldsV1"]:
            return after
        value, schema = seen
        formerly = ensure_named_fields(last["fieldsV1"], schema)
        pruned: KubeObject = remove_fields(value, formerly, schema) or {}
        pruned = self._restore_owned(value, pruned, managers, version)
        back = self._convert(pruned, version)
        if back is not None:
            pruned = back[0]
        pruned_fields = difference(
            ensure_named_fields(to_field_set(value, schema), schema),
            ensure_named_fields(to_field_set(pruned, schema), schema),
        )
        remaining: KubeObject = remove_fields(value, intersection(pruned_fields, formerly), schema) or {}
        current = self._convert(remaining, self._resource.api_version)
        return remaining if current is None else current[0]

    def _restore_owned(self, value: KubeObject, pruned: KubeObject, managers: Managers, first: str) -> KubeObject:
        """Restore pruned fields that another manager owns, one version after the other."""
        owned: dict[str, FieldSet] = {first: EMPTY_SET}
        for entry in managers.values():
            owned[entry["apiVersion"]] = union(owned.get(entry["apiVersion"], EMPTY_SET), entry["fieldsV1"])
        for version, fields in owned.items():
            whole, part = self._convert(value, version), self._convert(pruned, version)
            if whole is None or part is None:
                continue
            value, schema = whole
            current_fields = ensure_named_fields(to_field_set(value, schema), schema)
            stay = union(
                ensure_named_fields(to_field_set(part[0], schema), schema), ensure_named_fields(fields, schema)
            )
            pruned = remove_fields(value, difference(current_fields, stay), schema) or {}
        return pruned

    # From client-side to server-side apply

    def without_client_side_conflicts(self, conflicts: Conflicts) -> list[Conflict]:
        """Return the conflicts without unchanged fields from client-side apply."""
        own_fields = self._client_side_fields()
        return [conflict for conflict in conflicts.conflicts if not contains(own_fields, *conflict.path)]

    def _client_side_fields(self) -> FieldSet:
        live, schema = self._live, self._resource.schema
        text = _annotations(live).get(LAST_APPLIED)
        if live is None or not text:
            return EMPTY_SET
        try:
            last = msgspec.json.decode(text)
            if not isinstance(last, dict) or last.get("apiVersion") != self._resource.api_version:
                return EMPTY_SET
            validate(last, schema)
            fields = to_field_set(last, schema)
            for changes in compare(last, live, schema):
                fields = difference(fields, changes)
        except (msgspec.DecodeError, SchemaMismatch):
            return EMPTY_SET
        return fields


def _annotations(value: KubeObject | None) -> dict[str, Any]:
    return (value["metadata"].get("annotations") if value is not None else None) or {}


def _update_last_applied(outcome: ApplyResult, config: KubeObject, live: KubeObject | None) -> ApplyResult:
    """Update kubectl's annotation, if there is one, so that the user can return to client-side apply."""
    annotations = _annotations(outcome.object)
    if not annotations.get(LAST_APPLIED):
        return outcome
    metadata = dict(_metadata(config))
    if LAST_APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {key: text for key, text in metadata["annotations"].items() if key != LAST_APPLIED}
    annotation = escaped_json({**config, "metadata": metadata}) + "\n"
    if annotations[LAST_APPLIED] == annotation:
        return outcome
    annotations = {**annotations, LAST_APPLIED: annotation}
    if sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items()) > _ANNOTATIONS_MAX_BYTES:
        del annotations[LAST_APPLIED]
    value = dict(outcome.object) if outcome.object is live else outcome.object
    value["metadata"] = {**value["metadata"], "annotations": annotations}
    return ApplyResult(value, outcome.entries)
