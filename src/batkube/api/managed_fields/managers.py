"""Field managers, and their entries in `metadata.managedFields`.

Objects share entries: thousands of pods that a manager creates alike within one second refer to the same entry.

Kubernetes: apimachinery/pkg/util/managedfields/internal/managedfields.go and capmanagers.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from batkube.api.managed_fields.field_sets import FieldSet, encode, interned, parse_fields_v1, union
from batkube.api.managed_fields.typed_values import reconcile_field_set
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject
from batkube.kernel.memo import memoized

Entry = dict[str, Any]
"""An entry of managedFields as JSON; objects share entries, so they are never modified."""

UPDATE, APPLY = "Update", "Apply"

#: The maximum number of update entries; the oldest are merged beyond it.
_UPDATE_MANAGERS_MAX = 10
_MERGED_MANAGER_NAME = "ancient-changes"


class Manager(NamedTuple):
    """A field manager. Its version matters for updates only: an applier is the same manager in all versions."""

    name: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identifier(self) -> str:
        """The manager's identifier in kube-apiserver, by which it also sorts."""
        parts = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return json.dumps({key: value for key, value in parts.items() if value}, separators=(",", ":"))


Managers = dict[Manager, Entry]


def manager_of(entry: Entry) -> Manager:
    """Return the manager of an entry."""
    operation = entry["operation"]
    version = entry["apiVersion"] if operation == UPDATE else ""
    return Manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))


def entry_of(manager: Manager, api_version: str, time: str, fields: FieldSet) -> Entry:
    """Return an entry that makes `manager` the owner of `fields`; `time` is "" if there is none."""
    return _interned_entry(manager, api_version, time, encode(fields))


@memoized(1024, longest=16_384)
def _interned_entry(manager: Manager, api_version: str, time: str, fields: bytes) -> Entry:
    """Return the shared entry for all objects that a manager wrote alike within one second."""
    entry: Entry = {"manager": manager.name} if manager.name else {}
    entry |= {"operation": manager.operation, "apiVersion": api_version}
    if time:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = interned(fields)
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


# Reading entries


def decode_managers(entries: Iterable[Any]) -> Managers:
    """Decode the entries that a client sent; raises ValueError if one is malformed."""
    managers: Managers = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("operation") not in (UPDATE, APPLY):
            raise ValueError("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError("missing or invalid fieldsType")
        manager, version, time = manager_of(entry), entry["apiVersion"], entry.get("time") or ""
        if not all(isinstance(text, str) for text in (*manager, version, time)):
            raise ValueError("manager, operation, apiVersion and time must be strings")
        managers[manager] = entry_of(manager, version, time, parse_fields_v1(entry.get("fieldsV1") or {}))
    return managers


def live_managers(live: KubeObject | None) -> Managers:
    """Decode the entries of a stored object, which are valid."""
    entries = live["metadata"].get("managedFields", ()) if live is not None else ()
    return {manager_of(entry): entry for entry in entries}


def reconcile_managers(managers: Managers, resource: Resource) -> Managers:
    """Adapt the field sets to the current schema, which changes for custom resources only."""
    if not resource.custom:
        return managers
    now = {}
    for manager, entry in managers.items():
        same_version = entry["apiVersion"] == resource.api_version
        fields = reconcile_field_set(entry["fieldsV1"], resource.schema) if same_version else entry["fieldsV1"]
        is_unchanged = fields is entry["fieldsV1"]
        now[manager] = entry if is_unchanged else entry_of(manager, entry["apiVersion"], entry.get("time", ""), fields)
    return now


def cap_updaters(managers: Managers) -> Managers:
    """Merge the oldest update entries of a version while there are too many (managedfields, capmanagers.go)."""
    updaters = [manager for manager, entry in managers.items() if entry["operation"] == UPDATE]
    surplus = len(updaters) - _UPDATE_MANAGERS_MAX
    if surplus <= 0:
        return managers
    managers = dict(managers)
    first_of: dict[str, Manager] = {}
    for manager in sorted(updaters, key=lambda each: (managers[each].get("time", ""), each.identifier)):
        if surplus <= 0:
            break
        entry = managers[manager]
        version = entry["apiVersion"]
        first = first_of.setdefault(version, manager)
        if first == manager:
            continue
        bucket = Manager(_MERGED_MANAGER_NAME, UPDATE, version, "")
        if bucket not in managers:
            managers[bucket] = managers.pop(first)
        fields = union(entry["fieldsV1"], managers[bucket]["fieldsV1"])
        managers.pop(manager)
        managers[bucket] = entry_of(bucket, version, entry.get("time", ""), fields)
        surplus -= 1
    return managers


# Writing entries


def encode_managers(managers: Managers) -> list[Entry]:
    """Encode the managers as entries, sorted as in kube-apiserver."""
    if len(managers) == 1:
        return list(managers.values())
    return sorted(managers.values(), key=_entry_order)


def _entry_order(entry: Entry) -> tuple[str, ...]:
    return (
        entry["operation"],
        entry.get("time", ""),
        entry.get("manager", ""),
        entry["apiVersion"],
        entry.get("subresource", ""),
    )
