"""Watches: every change of a kind, told to every client that asked, in order, from the version it asked for.

A watch is a cursor into the store's history. While its reader keeps up, changes are written to it as they happen, each
encoded once for all watches of the same form. A reader that lags is not buffered for: its watch stops writing, and goes
on from the history when the reader is ready again; if the history was compacted meanwhile it is told so (410 Gone), as
after a lost connection (Kubernetes: apiserver/pkg/storage/cacher). So a slow reader costs what is on its way to it,
and, until it has read them, a list of the objects that there were when it began, which it shares with the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from batkube.api.requests.messages import Sink, Timers
from batkube.api.requests.statuses import Failure
from batkube.api.verbs.selection import Selection
from batkube.cluster.store import ADDED, DELETED, MODIFIED, Batch, Change, Compacted, Entry, KubeObject, Store
from batkube.kernel.instants import Instant

ERROR = "ERROR"
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}

#: A pair of an object, which is shared, and its version, in a list.
_ENTRY_BYTES = 80
#: What is written at a time: less than a millisecond's work, then it is others' turn. So much fits into a TLS record.
_PIECE = 16 * 1024
#: How much is kept of what was encoded lately, for readers that are a little behind.
_MAX_TEXTS = 4 * 1024 * 1024
_BOOKMARK_INTERVAL_S = 60.0
_BOOKMARK_BEFORE_END_S = 2.0
_BOOKMARK_SOON_S = 1.0
_DEFAULT_TIMEOUT_S = 2700.0
"""The real server draws between 1800 and 3600 s when a client gives none."""


class EventForm(Protocol):
    """How the events of a watch are written; watches of equal form share what was encoded."""

    content_type: str
    #: Equal for watches whose events are written alike; None if they never are (a Table's first row is special).
    identity: object

    def body(self, value: KubeObject, version: int, now: Instant) -> bytes:
        """Return the object as it stands within an event."""

    def event(self, kind: str, body: bytes) -> bytes:
        """Return the event around an encoded object."""

    def bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        """Return a BOOKMARK event."""

    def failure(self, message: str) -> bytes:
        """Return the ERROR event of a watch whose version is gone."""


class Texts:
    """What was encoded lately: watches of equal form share it, also those that are told a little later than others."""

    def __init__(self, limit: int = _MAX_TEXTS) -> None:
        self._limit = limit
        #: By form, version and object (a change has two), oldest first. An object is there as long as its change can
        #: be told, so that none has the id of another.
        self._texts: dict[tuple[object, int, int], bytes] = {}
        self._size = 0

    def body(self, form: EventForm, value: KubeObject, version: int, now: Instant) -> bytes:
        """Return the object of the change to `version` as it stands within an event."""
        if form.identity is None:
            return form.body(value, version, now)
        key = (form.identity, version, id(value))
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = form.body(value, version, now)
            self._size += len(text)
            while self._size > self._limit:
                self._size -= len(self._texts.pop(next(iter(self._texts))))
        return text


def event_of(change: Change, selection: Selection) -> tuple[str, KubeObject] | None:
    """Return what `change` means to a client that sees only `selection`, or None.

    An object that stops to match is gone for this client: DELETED, as it was before.
    """
    if not selection.has_key(change.key):
        return None
    if not selection.is_partial:
        return change.type, change.object
    if change.type is DELETED:
        return (DELETED, change.object) if selection.has(change.object) else None
    is_in = selection.has(change.object)
    was_in = change.previous is not None and selection.has(change.previous)
    if is_in:
        return (MODIFIED if was_in else ADDED), change.object
    if was_in:
        assert change.previous is not None
        return DELETED, change.previous
    return None


class Watch:
    """One client's place in the store's history, and the stream that goes on from it."""

    def __init__(
        self,
        hub: Watches,
        storage: str,
        selection: Selection,
        form: EventForm,
        version: int,
        *,
        initial: list[Entry] | None = None,
        bookmarks: bool = False,
        marks_end: bool = False,
        timeout: float = 0.0,
    ) -> None:
        self.content_type = form.content_type
        self.headers: tuple[tuple[str, str], ...] = ()
        self.storage = storage
        self.selection = selection
        self.form = form
        self._hub = hub
        #: Everything up to this version was told.
        self._version = version
        self._initial = iter(initial or ())
        self._initial_left = len(initial or ())
        self._bookmarks = bookmarks
        self._marks_end = marks_end
        self._timeout = timeout or _DEFAULT_TIMEOUT_S
        self._sink: Sink | None = None
        #: Whether the reader has everything; only then is a change written when it happens.
        self._caught_up = False
        #: Whether the history that it has to go on with is gone.
        self._is_lost = False
        self._cancels: list[Callable[[], None]] = []
        self.when_stopped: Callable[[], None] | None = None

    @property
    def version(self) -> int:
        """Everything up to this version was told."""
        return self._version

    # The stream as the connection sees it

    @property
    def held_bytes(self) -> int:
        """What is kept for this reader alone: which objects there were in the beginning, as far as it has not read."""
        return _ENTRY_BYTES * self._initial_left

    def start(self, sink: Sink) -> None:
        """Begin: what is there, then what comes."""
        self._sink = sink
        self._hub.attach(self)
        self._cancels.append(self._hub.timers.after(self._timeout, self._end))
        if self._bookmarks:
            early = max(self._timeout - _BOOKMARK_BEFORE_END_S, _BOOKMARK_SOON_S)
            self._book(min(early, _BOOKMARK_INTERVAL_S))
        self.resume()

    @property
    def is_behind(self) -> bool:
        """Whether there is anything that the reader was not told yet."""
        return self._sink is not None and not self._caught_up

    def resume(self) -> None:
        """Write the next piece of what the reader was not told yet."""
        if self._sink is None or self._caught_up:
            return
        events, size = [], 0
        try:
            for event in self._backlog():
                events.append(event)
                size += len(event)
                if size >= _PIECE:
                    break
            else:
                self._caught_up = True
        except Failure:
            self._is_lost = True  # as in `tell`
        if events:
            self._sink.write(b"".join(events))
        if self._is_lost:
            self._end()

    def stop(self) -> None:
        """The reader is gone."""
        self._sink = None
        self._caught_up = False
        self._hub.detach(self)
        for cancel in self._cancels:
            cancel()
        self._cancels.clear()
        if self.when_stopped is not None:
            self.when_stopped()
            self.when_stopped = None

    # Writing

    def tell(self, change: Change, texts: Texts, now: Instant) -> None:
        """Write a change that just happened, unless the reader is behind or it does not concern this watch."""
        if not self._caught_up or change.version <= self._version or self._sink is None:
            return
        try:
            event = event_of(change, self.selection)
            if event is not None:
                if not self._sink.writable:
                    # Everything before was told, however long ago that was.
                    self._caught_up, self._version = False, change.version - 1
                    return
                kind, value = event
                self._sink.write(self.form.event(kind, texts.body(self.form, value, change.version, now)))
        except Failure:
            # Whoever should have converted the object did not; the client will hear why when it lists again.
            self._end()
        self._version = change.version

    def _backlog(self) -> Iterator[bytes]:
        """Yield what the reader was not told yet: the initial objects, their end, and the history since."""
        now = self._hub.now()
        for value, version in self._initial:
            self._initial_left -= 1
            yield self.form.event(ADDED, self.form.body(value, version, now))
        if self._marks_end:
            self._marks_end = False
            yield self.form.bookmark(self._version, INITIAL_EVENTS_END)
        try:
            missed = self._hub.store.batches_since(min(self._version, self._hub.store.version))
        except Compacted:
            self._is_lost = True
            yield self.form.failure(f"too old resource version: {self._version} ({self._hub.store.oldest_version})")
            return
        for batch in missed:
            if batch.kind != self.storage:
                continue
            for change in batch.changes():
                if change.version <= self._version:
                    continue
                event = event_of(change, self.selection)
                self._version = change.version
                if event is not None:
                    kind, value = event
                    yield self.form.event(kind, self._hub.texts.body(self.form, value, change.version, now))

    def _book(self, seconds: float) -> None:
        self._cancels.append(self._hub.timers.after(seconds, self._bookmark))

    def _bookmark(self) -> None:
        """Tell how far the client has come, so that it can resume from there even if nothing concerns it."""
        if self._caught_up and self._sink is not None and self._sink.writable:
            self._version = max(self._version, self._hub.store.version)
            self._sink.write(self.form.bookmark(self._version, {}))
        self._book(_BOOKMARK_INTERVAL_S)

    def _end(self) -> None:
        sink = self._sink
        self.stop()
        if sink is not None:
            sink.close()


class Watches:
    """All watches, and what they are told."""

    def __init__(self, store: Store, timers: Timers, now: Callable[[], Instant]) -> None:
        self.store = store
        self.timers = timers
        self.now = now
        self.texts = Texts()
        #: Only kinds that are watched now: custom ones come and go.
        self._by_storage: dict[str, dict[Watch, None]] = {}
        store.listen_to_all(self._changed)

    def attach(self, watch: Watch) -> None:
        """Tell `watch` of changes from now on."""
        self._by_storage.setdefault(watch.storage, {})[watch] = None

    def detach(self, watch: Watch) -> None:
        """Forget `watch`."""
        watches = self._by_storage.get(watch.storage, {})
        watches.pop(watch, None)
        if not watches:
            self._by_storage.pop(watch.storage, None)

    def count(self) -> int:
        """Return how many watches there are."""
        return sum(map(len, self._by_storage.values()))

    def _changed(self, batch: Batch, now: Instant) -> None:
        watches = self._by_storage.get(batch.kind)
        if watches is None:
            return
        for change in batch.changes():
            for watch in list(watches):
                watch.tell(change, self.texts, now)
