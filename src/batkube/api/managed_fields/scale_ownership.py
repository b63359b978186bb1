"""Field ownership of replicas that are written through the subresource `scale`.

A Scale has managers of its own, derived from those of its object: a manager that owns the object's replicas owns
`spec.replicas` of the Scale. After the write, ownership is transferred back: a manager that lost the replicas loses
them in the object, too, and a manager that gained them gets an entry with the subresource `scale`. As in
kube-apiserver, this entry has no time.

Kubernetes: managedfields/scalehandler.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.managed_fields.field_sets import LEAF, FieldSet, contains, difference
from batkube.api.managed_fields.managers import Entry, Managers, encode_managers, entry_of, live_managers, manager_of
from batkube.api.managed_fields.server_side_apply import ApplyResult, apply_configuration
from batkube.api.managed_fields.updates import entries_after_update
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

Path = tuple[str, ...]

REPLICAS: Path = ("f:spec", "f:replicas")
"""The path of the replicas in a Scale and in all built-in kinds."""


class ScaleOwnership:
    """The ownership of one object's replicas."""

    def __init__(
        self,
        live: KubeObject,
        resource: Resource,
        scale: Resource,
        replicas: Mapping[str, Path | None] | None = None,
    ) -> None:
        """Take the object and its resource, the resource of Scales, and the path of the replicas by version.

        A version with None has no subresource `scale`. Without paths, all versions have the path of the built-in kinds.
        """
        self._managers = live_managers(live)
        self._resource, self._scale = resource, scale
        self._replicas = replicas if replicas is not None else {resource.api_version: REPLICAS}

    def scale_entries(self) -> list[Entry]:
        """Return the managedFields of the Scale: the managers that own the replicas."""
        managers: Managers = {}
        for manager, entry in self._managers.items():
            path = self._replicas.get(entry["apiVersion"])
            if path is not None and contains(entry["fieldsV1"], *path):
                version, fields = self._scale.api_version, _field_set(REPLICAS)
                owner = entry_of(manager, version, entry.get("time", ""), fields)
                managers[manager_of(owner)] = owner
        return encode_managers(managers)

    def update(self, new: KubeObject, old: KubeObject, *, manager: str, now: Instant) -> list[Entry]:
        """Return the object's entries after an update of its Scale from `old` to `new`."""
        entries = entries_after_update(
            new, self._with_managed_fields(old), self._scale, manager=manager, now=now, subresource="scale"
        )
        return self._object_entries(entries)

    def apply(self, config: KubeObject, old: KubeObject, *, manager: str, now: Instant, force: bool) -> ApplyResult:
        """Return the Scale after an apply, with the entries of its object."""
        before = self._with_managed_fields(old)
        outcome = apply_configuration(
            config, before, self._scale, manager=manager, now=now, force=force, subresource="scale"
        )
        value = old if outcome.object is before else outcome.object
        return ApplyResult(value, self._object_entries(outcome.entries))

    def _with_managed_fields(self, scale: KubeObject) -> KubeObject:
        return {**scale, "metadata": {**scale["metadata"], "managedFields": self.scale_entries()}}

    def _object_entries(self, entries: list[Entry]) -> list[Entry]:
        """Return the object's entries after a change of the Scale's entries.

        As in kube-apiserver, an updater never matches its old entry, because the manager includes the version. It loses
        the replicas in its old entry and gets a second one for them.
        """
        scale = {manager_of(entry): entry for entry in entries}
        managers: Managers = {}
        for manager, entry in self._managers.items():
            version = entry["apiVersion"]
            if version not in self._replicas:
                continue
            path = self._replicas[version]
            if path is None or not contains(entry["fieldsV1"], *path) or scale.pop(manager, None) is not None:
                managers[manager] = entry
            elif left := difference(entry["fieldsV1"], _field_set(path)):
                managers[manager] = entry_of(manager, version, entry.get("time", ""), left)
        version = self._resource.api_version
        replicas = _field_set(self._replicas.get(version) or REPLICAS)
        for manager, entry in scale.items():
            if contains(entry["fieldsV1"], *REPLICAS):
                managers[manager] = entry_of(manager, version, "", replicas)
        return encode_managers(managers)


def _field_set(path: Path) -> FieldSet:
    fields: FieldSet = LEAF
    for element in reversed(path):
        fields = {element: fields}
    return fields
