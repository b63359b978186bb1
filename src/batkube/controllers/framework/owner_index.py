"""Index from controller objects to the objects they own: pods by ReplicaSet or Job, ReplicaSets by Deployment.

With an index, reconciling a Job reads only its own pods. Orphans are indexed by namespace and by label, because an
object with a matching selector may adopt them: a controller does not read the thousands of pods of others, which have
other labels. Kubernetes: pkg/controller/controller_utils.go, AddPodControllerIndexer.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.cluster.object_meta import controller_of, namespace_of
from batkube.cluster.selectors import LabelSelector, Operator
from batkube.cluster.store import DELETED, Batch, Change, Key, KubeObject, Store
from batkube.kernel.instants import Instant

#: The operators of requirements that a single value satisfies, if they have one value.
_EQUALITIES = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)
#: Called after a change of an object, with the reference to its controller (None for an orphan) and the change.
OwnedObjectHandler = Callable[[KubeObject | None, Change, Instant], None]


class OwnerIndex:
    """The objects of kind `kind`, indexed by the uid of their controller."""

    def __init__(self, store: Store, kind: str) -> None:
        self._store = store
        self.storage = kind
        #: Keys by the controller's uid, or by "namespace/" for orphans. Dicts are used as ordered sets.
        self._members: dict[str, dict[Key, None]] = {}
        #: The keys of orphans by namespace, label and value.
        self._orphans: dict[tuple[str, str, str], dict[Key, None]] = {}
        self._handlers: list[OwnedObjectHandler] = []
        store.subscribe(kind, self._on_objects_changed)

    def owned_by(self, uid: str) -> list[KubeObject]:
        """Return the objects owned by the controller with this uid, in the order of creation or adoption."""
        return self._objects(uid)

    def orphans(self, namespace: str, selector: LabelSelector) -> list[KubeObject]:
        """Return the objects in a namespace that have no controller and match a selector."""
        groups: list[dict[Key, None]] = [
            self._orphans.get((namespace, requirement.key, requirement.values[0]), {})
            for requirement in selector.requirements
            if requirement.operator in _EQUALITIES and len(requirement.values) == 1
        ]
        if groups:
            smallest = min(groups, key=lambda group: len(group))
            candidates = self._store.objects(self.storage, list(smallest))
        else:
            candidates = self._objects(f"{namespace}/")
        return [obj for obj in candidates if selector.matches(obj["metadata"].get("labels"))]

    def subscribe(self, handler: OwnedObjectHandler) -> None:
        """Call `handler` after every change; if the controller of an object changes, for the old and the new one."""
        self._handlers.append(handler)

    def _objects(self, group: str) -> list[KubeObject]:
        members = self._members.get(group)
        return self._store.objects(self.storage, list(members)) if members else []

    def _group(self, key: Key, obj: KubeObject) -> dict[Key, None]:
        reference = controller_of(obj)
        name = f"{namespace_of(key)}/" if reference is None else reference["uid"]
        return self._members.setdefault(name, {})

    def _on_objects_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            before = None if change.previous is None else controller_of(change.previous)
            after = controller_of(change.object)
            if change.previous is not None and (batch.type is DELETED or not _is_same_owner(before, after)):
                self._remove(change.key, change.previous)
            if batch.type is not DELETED:
                self._group(change.key, change.object)[change.key] = None
            self._index_labels(change)
            for handler in self._handlers:
                handler(after, change, now)
                if before is not None and not _is_same_owner(before, after):
                    handler(before, change, now)

    def _index_labels(self, change: Change) -> None:
        """Update the index of orphans by label."""
        before = _orphan_labels(change.previous)
        after = {} if change.type is DELETED else _orphan_labels(change.object)
        if before == after:
            return
        namespace = namespace_of(change.key)
        for label, value in before.items():
            if after.get(label) != value:
                group = self._orphans[namespace, label, value]
                del group[change.key]
                if not group:
                    del self._orphans[namespace, label, value]
        for label, value in after.items():
            if before.get(label) != value:
                self._orphans.setdefault((namespace, label, value), {})[change.key] = None

    def _remove(self, key: Key, obj: KubeObject) -> None:
        group = self._group(key, obj)
        group.pop(key, None)
        if not group:
            reference = controller_of(obj)
            self._members.pop(f"{namespace_of(key)}/" if reference is None else reference["uid"], None)


def _orphan_labels(obj: KubeObject | None) -> dict[str, str]:
    """Return the labels of an orphan; none if there is no object, or if it has a controller."""
    return {} if obj is None or controller_of(obj) is not None else obj["metadata"].get("labels") or {}


def is_newly_adoptable(change: Change) -> bool:
    """Return whether the change may make an orphan adoptable: it is new, just released, or has other labels."""
    previous = change.previous
    return (
        previous is None
        or previous["metadata"].get("labels") != change.object["metadata"].get("labels")
        or controller_of(previous) is not None
    )


def _is_same_owner(one: KubeObject | None, other: KubeObject | None) -> bool:
    return (None if one is None else one["uid"]) == (None if other is None else other["uid"])
