"""The life of a definition: what the server writes by itself after somebody wrote one, or an instance went.

Listeners of the store may not write, so whoever commits a request calls `settle` when it is done.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.custom.catalogue import DEFINITIONS
from batkube.api.custom.conditions import (
    CLEANUP_FINALIZER,
    ESTABLISHED,
    cleaned_up,
    deleting_instances,
    is_true,
    marked_for_deletion,
    settled,
)
from batkube.api.managed_fields import tracking
from batkube.cluster.kinds import Resource
from batkube.cluster.store import Batch, Key, KubeObject, Store
from batkube.kernel.instants import Instant

_MANAGER = "kube-apiserver"

DeleteInstances = Callable[[str, Instant], None]
"""Deletes all objects of a custom kind, given by its name in the store, as a deletion of the collection would."""

IsOwn = Callable[[str], bool]
"""Tells whether a definition is in a group of built-in kinds: then it has no instances, whatever has its name."""


class Lifecycle:
    """Brings definitions into the state that their spec asks for."""

    def __init__(self, store: Store, resource: Resource, delete_instances: DeleteInstances, is_own: IsOwn) -> None:
        self._store = store
        self._is_own = is_own
        #: The resource of definitions themselves.
        self._resource = resource
        self._delete_instances = delete_instances
        #: The definitions written, or whose instances went, since the last time.
        self._touched: dict[Key, None] = {}
        #: The definitions whose instances are being deleted, by the name of the instances in the store.
        self._waiting: dict[str, Key] = {}
        store.listen(DEFINITIONS, self._definition_changed)

    def _definition_changed(self, batch: Batch, now: Instant) -> None:
        for key, definition in zip(batch.keys, batch.objects, strict=True):
            self._touched[key] = None
            # A name that was given up may be what another definition of the group waits for.
            group = definition["spec"].get("group")
            for other, value in self._store.all(DEFINITIONS).items():
                if value["spec"].get("group") == group:
                    self._touched[other] = None

    def settle(self, now: Instant) -> None:
        """Write what has become due; to be called after every request that changed something."""
        while self._touched or self._finish_one(now):
            if self._touched:
                key = next(iter(self._touched))
                del self._touched[key]
                self._settle_one(key, now)

    def _settle_one(self, key: Key, now: Instant) -> None:
        definition = self._store.get(DEFINITIONS, key)
        if definition is None:
            return
        if "deletionTimestamp" in definition["metadata"]:
            self._clean_up(key, definition, now)
            return
        others = [value for other, value in self._store.all(DEFINITIONS).items() if other != key]
        for step in settled(definition, others, now):
            definition = self._write(key, definition, step, now)

    def mark_for_deletion(self, key: Key, now: Instant) -> KubeObject:
        """Mark a definition as going, which is all that a request to delete it does at once; return it."""
        definition = marked_for_deletion(self._store.objects(DEFINITIONS, [key])[0], now)
        self._store.replace(DEFINITIONS, [key], [definition], now)
        return definition

    def _write(self, key: Key, old: KubeObject, new: KubeObject, now: Instant) -> KubeObject:
        entries = tracking.updated(new, old, self._resource, manager=_MANAGER, now=now, subresource="status")
        if entries:
            new = {**new, "metadata": {**new["metadata"], "managedFields": entries}}
        self._store.replace(DEFINITIONS, [key], [new], now)
        return new

    def _clean_up(self, key: Key, definition: KubeObject, now: Instant) -> None:
        if CLEANUP_FINALIZER not in (definition["metadata"].get("finalizers") or ()):
            return
        name = definition["metadata"]["name"]
        if name not in self._waiting:
            self._waiting[name] = key
            definition = self._write(key, definition, deleting_instances(definition, now), now)
            if is_true(definition, ESTABLISHED) and not self._is_own(name):
                self._delete_instances(name, now)

    def _finish_one(self, now: Instant) -> bool:
        """Let one definition go whose last instance has gone; return whether there was one."""
        for storage, key in self._waiting.items():
            if self._is_own(storage) or not self._store.all(storage):
                del self._waiting[storage]
                definition = self._store.get(DEFINITIONS, key)
                if definition is not None:
                    self._release(key, definition, now)
                return True
        return False

    def _release(self, key: Key, definition: KubeObject, now: Instant) -> None:
        done = cleaned_up(definition, now)
        if done["metadata"].get("finalizers"):
            self._write(key, definition, done, now)
        else:
            self._store.delete(DEFINITIONS, [key], now)
