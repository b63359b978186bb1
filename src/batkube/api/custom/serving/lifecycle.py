"""The lifecycle of definitions: the server's own writes after a definition was written or its instances deleted.

Subscribers of the store cannot write to it, so `reconcile` must be called after each committed request.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.custom.serving.conditions import (
    CLEANUP_FINALIZER,
    ESTABLISHED,
    controller_updates,
    is_condition_true,
    with_deletion_completed,
    with_deletion_in_progress,
    with_deletion_pending,
)
from batkube.api.custom.serving.custom_kinds import CUSTOM_RESOURCE_DEFINITIONS
from batkube.api.managed_fields import updates
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Batch, Key, KubeObject, Store
from batkube.kernel.instants import Instant

_MANAGER = "kube-apiserver"

DeleteInstances = Callable[[str, Instant], None]
"""Deletes all objects of a custom kind, given its storage name, like a deletecollection request."""

IsInBuiltInGroup = Callable[[str], bool]
"""Returns whether a definition's group is built-in: then it has no instances, even if objects have its name."""


class DefinitionLifecycle:
    """Reconciles definitions with their spec."""

    def __init__(
        self, store: Store, resource: Resource, delete_instances: DeleteInstances, is_own: IsInBuiltInGroup
    ) -> None:
        self._store = store
        self._is_in_built_in_group = is_own
        #: The resource of CustomResourceDefinitions.
        self._resource = resource
        self._delete_instances = delete_instances
        #: The definitions that were written, or lost instances, since the last reconciliation.
        self._changed: dict[Key, None] = {}
        #: The definitions whose instances are being deleted, by the storage name of the instances.
        self._terminating: dict[str, Key] = {}
        store.subscribe(CUSTOM_RESOURCE_DEFINITIONS, self._on_definitions_changed)

    def _on_definitions_changed(self, batch: Batch, now: Instant) -> None:
        for key, definition in zip(batch.keys, batch.objects, strict=True):
            self._changed[key] = None
            # Another definition of the group may be waiting for a name that has become free.
            group = definition["spec"].get("group")
            for other, value in self._store.all(CUSTOM_RESOURCE_DEFINITIONS).items():
                if value["spec"].get("group") == group:
                    self._changed[other] = None

    def reconcile(self, now: Instant) -> None:
        """Write all status updates and deletions that are due; call this after every request that changed an object."""
        while self._changed or self._finalize_one(now):
            if self._changed:
                key = next(iter(self._changed))
                del self._changed[key]
                self._reconcile_one(key, now)

    def _reconcile_one(self, key: Key, now: Instant) -> None:
        definition = self._store.get(CUSTOM_RESOURCE_DEFINITIONS, key)
        if definition is None:
            return
        if "deletionTimestamp" in definition["metadata"]:
            self._delete_custom_resources(key, definition, now)
            return
        others = [value for other, value in self._store.all(CUSTOM_RESOURCE_DEFINITIONS).items() if other != key]
        for step in controller_updates(definition, others, now):
            definition = self._update_status(key, definition, step, now)

    def mark_for_deletion(self, key: Key, now: Instant) -> KubeObject:
        """Mark a definition for deletion and return it; its instances are deleted later."""
        definition = with_deletion_pending(self._store.objects(CUSTOM_RESOURCE_DEFINITIONS, [key])[0], now)
        self._store.replace(CUSTOM_RESOURCE_DEFINITIONS, [key], [definition], now)
        return definition

    def _update_status(self, key: Key, old: KubeObject, new: KubeObject, now: Instant) -> KubeObject:
        entries = updates.entries_after_update(
            new, old, self._resource, manager=_MANAGER, now=now, subresource="status"
        )
        if entries:
            new = {**new, "metadata": {**new["metadata"], "managedFields": entries}}
        self._store.replace(CUSTOM_RESOURCE_DEFINITIONS, [key], [new], now)
        return new

    def _delete_custom_resources(self, key: Key, definition: KubeObject, now: Instant) -> None:
        if CLEANUP_FINALIZER not in (definition["metadata"].get("finalizers") or ()):
            return
        name = definition["metadata"]["name"]
        if name not in self._terminating:
            self._terminating[name] = key
            definition = self._update_status(key, definition, with_deletion_in_progress(definition, now), now)
            if is_condition_true(definition, ESTABLISHED) and not self._is_in_built_in_group(name):
                self._delete_instances(name, now)

    def _finalize_one(self, now: Instant) -> bool:
        """Delete one definition whose last instance is gone; return whether there was one."""
        for storage, key in self._terminating.items():
            if self._is_in_built_in_group(storage) or not self._store.all(storage):
                del self._terminating[storage]
                definition = self._store.get(CUSTOM_RESOURCE_DEFINITIONS, key)
                if definition is not None:
                    self._remove_finalizer(key, definition, now)
                return True
        return False

    def _remove_finalizer(self, key: Key, definition: KubeObject, now: Instant) -> None:
        done = with_deletion_completed(definition, now)
        if done["metadata"].get("finalizers"):
            self._update_status(key, definition, done, now)
        else:
            self._store.delete(CUSTOM_RESOURCE_DEFINITIONS, [key], now)
