"""The store: every Kubernetes object there is, and how it changes.

Objects are plain JSON-like dictionaries, replaced and never edited in place, so that anyone may keep one. There is one
door for change, `commit`: it takes the objects as they shall be (None: deleted), gives each change its own version,
adds it to the history and tells the listeners once for the whole batch. What happens together is so seen together.

As in etcd, an object's version is not part of the stored object: it belongs to the store, and is put into
`metadata.resourceVersion` where an object leaves it (Kubernetes: apiserver/pkg/storage/etcd3, "mod revision").
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from batkube.kernel.errors import Bug
from batkube.kernel.instants import Instant

KubeObject = dict[str, Any]
"""A Kubernetes object as its JSON; never edited once it is in the store."""


class ObjectKey(NamedTuple):
    """The identity of an object within the store; `namespace` is empty for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str


class ChangeType(enum.StrEnum):
    """How an object changed; the words of a Kubernetes watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, frozen=True, gc=False):
    """One step of the store's history. A struct and not a tuple, because millions are made in a run."""

    version: int
    type: ChangeType
    key: ObjectKey
    #: The object after the change; for a deletion, as it last was.
    object: KubeObject
    #: The object before the change; None when it was added.
    previous: KubeObject | None


ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED

Write = tuple[ObjectKey, KubeObject | None]
"""An object as it shall be, or None to delete it."""

Listener = Callable[[list[Change], Instant], None]


class Compacted(Exception):
    """The version asked for is older than the history kept; the client must list again (HTTP 410 Gone)."""


class Store:
    """All live objects and their recent history."""

    def __init__(self, history_limit: int = 1000) -> None:
        #: Every live object, by kind and key, as the latest change left it.
        self._latest: dict[str, dict[ObjectKey, Change]] = {}
        #: The newest changes, versions ascending without a gap up to `version`.
        self._history: deque[Change] = deque(maxlen=history_limit)
        self._listeners: dict[str, list[Listener]] = {}
        self._committing = False
        #: Strictly increasing; equals the version of the newest Change.
        self.version = 0

    def live(self, kind: str) -> Mapping[ObjectKey, Change]:
        """Return the live objects of `kind`, oldest first, each as its latest change; the mapping stays up to date."""
        return self._latest.setdefault(kind, {})

    def get(self, key: ObjectKey) -> KubeObject | None:
        """Return the live object at `key`, or None."""
        latest = self.live(key.kind).get(key)
        return None if latest is None else latest.object

    def listen(self, kind: str, listener: Listener) -> None:
        """Call `listener(changes, now)` after every commit that changed objects of `kind`.

        Listeners are called in the order they came. They must not commit: they book an appointment instead, so that
        every listener sees every change in the order it happened.
        """
        self._listeners.setdefault(kind, []).append(listener)

    def commit(self, kind: str, writes: Iterable[Write], now: Instant) -> list[Change]:
        """Make `writes`, all of one kind, happen together at `now`, and return the changes in order."""
        if self._committing:
            raise Bug(f"a listener committed {kind} objects while a commit was being told")
        self._committing = True
        try:
            changes = self._apply(kind, writes)
            for listener in self._listeners.get(kind, ()):
                listener(changes, now)
        finally:
            self._committing = False
        return changes

    def _apply(self, kind: str, writes: Iterable[Write]) -> list[Change]:
        latest = self._latest.setdefault(kind, {})
        version = self.version
        changes: list[Change] = []
        for key, value in writes:
            before = latest.get(key)
            version += 1
            if value is None:
                if before is None:
                    raise Bug(f"deleted {kind} {key.namespace}/{key.name}, which does not exist")
                del latest[key]
                change = Change(version, DELETED, key, before.object, before.object)
            elif before is None:
                change = latest[key] = Change(version, ADDED, key, value, None)
            else:
                change = latest[key] = Change(version, MODIFIED, key, value, before.object)
            changes.append(change)
        self.version = version
        self._history.extend(changes)
        return changes

    def changes_since(self, version: int) -> list[Change]:
        """Return every change after `version`, oldest first; raises Compacted when the history is too short."""
        missing = self.version - version
        if missing > len(self._history):
            oldest = self._history[0].version - 1 if self._history else self.version
            raise Compacted(f"version {version} is too old; the oldest kept is {oldest}")
        if missing <= 0:
            return []
        return list(self._history)[-missing:]
