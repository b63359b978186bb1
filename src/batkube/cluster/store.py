"""The store of all Kubernetes objects, with versions, a history of changes and subscriptions; the role of etcd.

Objects are JSON-like dictionaries. They are replaced, never edited in place, so any caller may keep one. All writes go
through `_commit`, in batches of one kind and one change type: subscribers see changes that happen together as one
batch, and a batch of a hundred pods costs little more than one pod. Each change has its own version. The newest
batches are kept as history, so that a watch can resume from an older version.

As in etcd, an object's version is not part of the stored object. The API server writes it into
`metadata.resourceVersion` when it sends the object (Kubernetes: apiserver/pkg/storage/etcd3, "mod revision").
"""

from __future__ import annotations

import bisect
import enum
import itertools
import operator
import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, NamedTuple, NewType

import msgspec

from batkube.cluster.sorted_keys import SortedKeys
from batkube.cluster.sorted_view import SortedView
from batkube.kernel.errors import Bug
from batkube.kernel.instants import Instant

_encode = msgspec.json.Encoder().encode

KubeObject = dict[str, Any]
"""A Kubernetes object as its JSON; never edited once it is in the store."""

Key = NewType("Key", str)
"""The identity of an object within its kind: `namespace/name`, or `name` for a cluster-scoped object.

client-go: tools/cache/store.go, MetaNamespaceKeyFunc.
"""


class ChangeType(enum.StrEnum):
    """The type of a change, as in a Kubernetes watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED


class Change(NamedTuple):
    """One step of the store's history."""

    version: int
    type: ChangeType
    key: Key
    #: The object after the change; for a deletion, as it last was.
    object: KubeObject
    #: The object before a modification or deletion, for watches with a label or field selector.
    previous: KubeObject | None = None


Entry = tuple[KubeObject, int]
"""A live object and the version of its latest change."""
_VALUE: Callable[[Entry], KubeObject] = operator.itemgetter(0)


class Batch(msgspec.Struct, frozen=True):
    """Changes of one type to objects of one kind, committed together; index i of every list is one change."""

    kind: str
    type: ChangeType
    #: The versions of the first and the last change; versions are consecutive.
    first_version: int
    last_version: int
    keys: Sequence[Key]
    #: The objects after the change; for a deletion, as they last were.
    objects: Sequence[KubeObject]
    #: The entries before a modification or deletion; empty for an addition.
    previous: Sequence[Entry] = ()
    #: The Decision that the change carries out, if a scheduler made it (`cluster.decisions`).
    decision: object = None
    #: The status that all objects share, if the change set it (`Store.set_statuses`).
    status: KubeObject | None = None

    def at(self, positions: Sequence[int]) -> Sequence[KubeObject]:
        """Return the objects at these positions; `objects` itself if these are all."""
        objects = self.objects
        return objects if len(positions) == len(objects) else [objects[position] for position in positions]

    def changes(self) -> Iterator[Change]:
        """Yield the changes of the batch."""
        before = [entry[0] for entry in self.previous] or itertools.repeat(None)
        for number, (key, value, old) in enumerate(zip(self.keys, self.objects, before, strict=False)):
            yield Change(self.first_version + number, self.type, key, value, old)


_LAST_VERSION: Callable[[Batch], int] = operator.attrgetter("last_version")
_RELEASED = Batch("", ADDED, 0, 0, (), ())
#: How many released batches may be in the list of the history.
_MAX_RELEASED = 1024

Listener = Callable[[Batch, Instant], None]


class Compacted(Exception):
    """The requested version is older than the history; the client must list again (HTTP 410 Gone)."""


class Store:
    """All live objects and their recent history."""

    def __init__(
        self, history_limit: int = 1000, history_bytes: int | None = None, *, sampling_interval: int = 1
    ) -> None:
        """Keep the latest `history_limit` changes, fewer if their previous objects exceed `history_bytes`.

        A limit of 0 disables the history. For `sampling_interval` see `_sampled_size`.
        """
        #: Every live object with the version of its latest change, by kind and key, oldest first.
        self._live: dict[str, dict[Key, Entry]] = {}
        #: The keys of the kinds that were listed. Runs without an API list none.
        self._sorted_keys: dict[str, SortedKeys[Key]] = {}
        #: The newest batches; together at least `history_limit` changes, once that many were made. Those before
        #: `_history_begin` are released.
        self._history: list[Batch] = []
        self._history_begin = 0
        self._history_limit = history_limit
        #: Estimated bytes of previous objects that each batch of the history keeps alive, and their sum.
        self._history_sizes: deque[int] = deque()
        self._history_size = 0
        self._history_bytes = history_bytes
        self._sampling_interval = sampling_interval
        #: The number of batches before the next one that is measured.
        self._unsampled = 0
        self._listeners: dict[str, list[Listener]] = {}
        #: Listeners to all kinds, called after the others.
        self._listeners_to_all: list[Listener] = []
        self._committing = False
        #: Strictly increasing; equals the version of the newest change.
        self.version = 0

    # Reading

    def get(self, kind: str, key: Key) -> KubeObject | None:
        """Return the live object at `key`, or None."""
        entry = self._live.get(kind, {}).get(key)
        return None if entry is None else entry[0]

    def version_of(self, kind: str, key: Key) -> int | None:
        """Return the version of the latest change of the live object at `key`, or None."""
        entry = self._live.get(kind, {}).get(key)
        return None if entry is None else entry[1]

    def entry(self, kind: str, key: Key) -> Entry | None:
        """Return the live object at `key` with its version, or None."""
        return self._live.get(kind, {}).get(key)

    def entries(self, kind: str) -> dict[Key, Entry]:
        """Return every live object of `kind` with its version, by key, oldest first. Do not edit or keep the result."""
        return self._live.get(kind, {})

    def view(self, kind: str, version: int | None = None) -> SortedView[Key, Entry]:
        """Return the objects of `kind` in the order of their keys, as they are now or were at `version`.

        The result is valid until the next write. Raises Compacted if the history is too short. Later changes are undone
        one by one. That is cheap for recent versions, and clients request no others: they read pages of a long list.
        """
        live = self._live.get(kind, {})
        keys = self._sorted_keys.get(kind)
        if keys is None:
            keys = SortedKeys(live)
            if live:
                self._sorted_keys[kind] = keys
        return SortedView(live, keys, {} if version is None else self._undone_changes(kind, version))

    def _undone_changes(self, kind: str, version: int) -> dict[Key, Entry | None]:
        """Return the former entries of objects that have changed since `version`; None for those added since."""
        if version < self.oldest_version:
            raise self._compacted(version)
        former: dict[Key, Entry | None] = {}
        first = self._position_after(version)
        for batch in reversed(self._history[first:]):
            if batch.kind != kind:
                continue
            for number in range(max(version + 1 - batch.first_version, 0), len(batch.keys)):
                former[batch.keys[number]] = None if batch.type is ADDED else batch.previous[number]
        return former

    def objects(self, kind: str, keys: Sequence[Key]) -> list[KubeObject]:
        """Return the live objects at `keys`, all of which must exist."""
        return list(map(_VALUE, self._entries_of(kind, keys)))

    def _entries_of(self, kind: str, keys: Sequence[Key]) -> list[Entry]:
        live = self._live.get(kind, {})
        try:
            return list(map(live.__getitem__, keys))
        except KeyError as missing:
            raise Bug(f"there is no {kind} {missing}") from missing

    def has_any(self, kinds: Set[str]) -> bool:
        """Return whether any object of any of these kinds exists."""
        return not self._live.keys().isdisjoint(kinds)

    def existing(self, kind: str, keys: Sequence[Key]) -> Sequence[Key]:
        """Return the keys of live objects; `keys` itself if all are."""
        live = self._live.get(kind, {})
        return keys if all(map(live.__contains__, keys)) else [key for key in keys if key in live]

    def all(self, kind: str) -> dict[Key, KubeObject]:
        """Return every live object of `kind` by key, oldest first."""
        return {key: entry[0] for key, entry in self._live.get(kind, {}).items()}

    def in_namespace(self, kind: str, namespace: str) -> Iterator[tuple[Key, KubeObject]]:
        """Yield the live objects of `kind` in a namespace, oldest first."""
        prefix = f"{namespace}/"
        for key, (obj, _) in self._live.get(kind, {}).items():
            if key.startswith(prefix):
                yield key, obj

    def batches_since(self, version: int) -> Iterator[Batch]:
        """Yield every batch with a change after `version`, oldest first; raise Compacted if that is too old.

        The batches are found by bisection, since a watch that is far behind resumes many times until it has caught up.
        """
        if version < self.oldest_version:
            raise self._compacted(version)
        return map(self._history.__getitem__, range(self._position_after(version), len(self._history)))

    def _position_after(self, version: int) -> int:
        """Return the position in the history of the first batch with a change after `version`."""
        return bisect.bisect_right(self._history, version, lo=self._history_begin, key=_LAST_VERSION)

    @property
    def oldest_version(self) -> int:
        """The oldest version from which a watch can still start."""
        return self._history[self._history_begin].first_version - 1 if self._has_history else self.version

    @property
    def _has_history(self) -> bool:
        return self._history_begin < len(self._history)

    def compact(self, version: int | None = None) -> None:
        """Drop the history up to `version`, or all of it: clients with an older version must list again."""
        until = self.version if version is None else version
        while self._has_history and self._history[self._history_begin].last_version <= until:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Release the oldest batch. The list is shortened after many releases only, since that moves all its items."""
        self._history[self._history_begin] = _RELEASED
        self._history_begin += 1
        self._history_size -= self._history_sizes.popleft()
        if self._history_begin >= _MAX_RELEASED:
            del self._history[: self._history_begin]
            self._history_begin = 0

    def _append_history(self, batch: Batch) -> None:
        """Add `batch` to the history, and drop the oldest batches beyond its limits."""
        size = self._sampled_size(batch) if batch.previous and self._history_bytes is not None else 0
        self._history.append(batch)
        self._history_sizes.append(size)
        self._history_size += size
        oldest_kept = self.version - self._history_limit + 1
        while self._history[self._history_begin].last_version < oldest_kept:
            self._drop_oldest()
        while (
            self._history_bytes is not None
            and self._history_size > self._history_bytes
            and self._history_begin < len(self._history) - 1
        ):
            self._drop_oldest()

    def _sampled_size(self, batch: Batch) -> int:
        """Estimate the bytes of previous objects that a batch keeps alive; 0 for a batch that is not sampled.

        Measuring an object takes a tenth of the time of a write. So one batch in `sampling_interval` is measured and
        counts that many times. It is chosen at random, so that no client can hide large objects between samples.
        """
        if self._unsampled:
            self._unsampled -= 1
            return 0
        self._unsampled = secrets.randbelow(2 * self._sampling_interval - 1)
        # The JSON text is about as large as the object and fast to produce.
        return self._sampling_interval * sum(len(_encode(value)) for value, _ in batch.previous)

    def _compacted(self, version: int) -> Compacted:
        return Compacted(f"version {version} is too old; the oldest kept is {self.oldest_version}")

    def subscribe(self, kind: str, listener: Listener) -> None:
        """Call `listener(batch, now)` after every change to objects of `kind`.

        Listeners are called in order of subscription. They must not write to the store. They book an appointment
        instead, so that every listener sees all changes in order.
        """
        self._listeners.setdefault(kind, []).append(listener)

    def subscribe_all(self, listener: Listener) -> None:
        """Call `listener(batch, now)` after every change to objects of any kind, including kinds added later."""
        self._listeners_to_all.append(listener)

    # Writing

    def create(self, kind: str, keys: Sequence[Key], objects: Sequence[KubeObject], now: Instant) -> None:
        """Add new objects."""
        live = self._live.setdefault(kind, {})
        count = len(live) + len(keys)
        self._commit(ADDED, kind, keys, objects, (), now)
        if len(live) != count:
            raise Bug(f"created a {kind} that exists already, among {keys[0]} … {keys[-1]}")

    def replace(
        self,
        kind: str,
        keys: Sequence[Key],
        objects: Sequence[KubeObject],
        now: Instant,
        decision: object = None,
    ) -> None:
        """Replace live objects by `objects`."""
        self._commit(MODIFIED, kind, keys, objects, self._entries_of(kind, keys), now, decision)

    def set_statuses(
        self,
        kind: str,
        keys: Sequence[Key],
        statuses: KubeObject | Sequence[KubeObject],
        now: Instant,
        decision: object = None,
    ) -> None:
        """Set the statuses of live objects, one each or one that all share, and keep their other fields."""
        previous = self._entries_of(kind, keys)
        if isinstance(statuses, dict):
            shared = {"status": statuses}
            changed = [value | shared for value, _ in previous]
            self._commit(MODIFIED, kind, keys, changed, previous, now, decision, statuses)
        else:
            pairs = zip(previous, statuses, strict=True)
            changed = [{**value, "status": status} for (value, _), status in pairs]
            self._commit(MODIFIED, kind, keys, changed, previous, now, decision)

    def delete(self, kind: str, keys: Sequence[Key], now: Instant, decision: object = None) -> None:
        """Remove live objects."""
        previous = self._entries_of(kind, keys)
        self._commit(DELETED, kind, keys, list(map(_VALUE, previous)), previous, now, decision)

    def _commit(
        self,
        change: ChangeType,
        kind: str,
        keys: Sequence[Key],
        objects: Sequence[KubeObject],
        previous: Sequence[Entry],
        now: Instant,
        decision: object = None,
        status: KubeObject | None = None,
    ) -> None:
        """Apply a batch to the live objects, add it to the history and notify the listeners. All writes end here."""
        if self._committing:
            raise Bug(f"a listener wrote {kind} objects while listeners were being notified of a change")
        if not keys:
            return
        first, live = self.version + 1, self._live.setdefault(kind, {})
        if change is DELETED:
            for key in keys:
                del live[key]
            if not live:
                del self._live[kind]
                self._sorted_keys.pop(kind, None)
        else:
            live.update(zip(keys, zip(objects, itertools.count(first)), strict=True))
        if kind in self._sorted_keys and change is not MODIFIED:
            sorted_keys = self._sorted_keys[kind]
            for key in keys:
                (sorted_keys.remove if change is DELETED else sorted_keys.add)(key)
        self.version += len(keys)
        batch = Batch(kind, change, first, self.version, keys, objects, previous, decision, status)
        if self._history_limit:
            self._append_history(batch)
        self._committing = True
        try:
            for listener in self._listeners.get(kind, ()):
                listener(batch, now)
            for listener in self._listeners_to_all:
                listener(batch, now)
        except Exception as error:
            others = f" and {len(keys) - 1:,} more" if len(keys) > 1 else ""
            error.add_note(f"while subscribers were notified: {kind} {keys[0]}{others} {change}, version {first}")
            raise
        finally:
            self._committing = False
