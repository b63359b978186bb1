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
from batkube.api.verbs.storage.selection import Selection
from batkube.cluster.store import ADDED, DELETED, MODIFIED, Batch, Change, Compacted, Entry, KubeObject, Store
from batkube.kernel.instants import Instant

ERROR = "ERROR"
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}

#: A pair of an object, which is shared, and its version, in a list.
_ENTRY_BYTES = 80
#: What is written at a time: less than a millisecond's work, then it is others' turn. So much fits into a TLS record.
_PIECE_BYTES = 16 * 1024
#: How much is kept of what was encoded lately, for readers that are a little behind.
_MAX_CACHED_BYTES = 4 * 1024 * 1024
_BOOKMARK_INTERVAL_S = 60.0
_BOOKMARK_BEFORE_END_S = 2.0
_BOOKMARK_SOON_S = 1.0
_DEFAULT_TIMEOUT_S = 2700.0
"""The real server draws between 1800 and 3600 s when a client gives none."""


class EventEncoder(Protocol):
    """How the events of a watch are written; watches of equal form share what was encoded."""

    content_type: str
    #: Equal for watches whose events are written alike; None if they never are (a Table's first row is special).
    identity: object

    def encode_body(self, value: KubeObject, version: int, now: Instant) -> bytes:
        """Return the object as it stands within an event."""

    def wrap_event(self, kind: str, body: bytes) -> bytes:
        """Return the event around an encoded object."""

    def bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        """Return a BOOKMARK event."""

    def error(self, message: str) -> bytes:
        """Return the ERROR event of a watch whose version is gone."""


class EncodedObjectCache:
    """What was encoded lately: watches of equal form share it, also those that are told a little later than others."""

    def __init__(self, limit: int = _MAX_CACHED_BYTES) -> None:
        self._limit = limit
        #: By form, version and object (a change has two), oldest first. An object is there as long as its change can
        #: be told, so that none has the id of another.
        self._encoded: dict[tuple[object, int, int], bytes] = {}
        self._size = 0

    def encode_body(self, form: EventEncoder, value: KubeObject, version: int, now: Instant) -> bytes:
        """Return the object of the change to `version` as it stands within an event."""
        if form.identity is None:
            return form.encode_body(value, version, now)
        key = (form.identity, version, id(value))
        text = self._encoded.get(key)
        if text is None:
            text = self._encoded[key] = form.encode_body(value, version, now)
            self._size += len(text)
            while self._size > self._limit:
                self._size -= len(self._encoded.pop(next(iter(self._encoded))))
        return text


def event_for(change: Change, selection: Selection) -> tuple[str, KubeObject] | None:
    """Return what `change` means to a client that sees only `selection`, or None.

    An object that stops to match is gone for this client: DELETED, as it was before.
    """
    if not selection.matches_key(change.key):
        return None
    if not selection.is_partial:
        return change.type, change.object
    if change.type is DELETED:
        return (DELETED, change.object) if selection.matches_object(change.object) else None
    is_in = selection.matches_object(change.object)
    was_in = change.previous is not None and selection.matches_object(change.previous)
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
        hub: WatchHub,
        storage: str,
        selection: Selection,
        form: EventEncoder,
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
        self.encoder = form
        self._watches = hub
        #: Everything up to this version was told.
        self._version = version
        self._initial = iter(initial or ())
        self._initial_left = len(initial or ())
        self._bookmarks = bookmarks
        self._pending_initial_events_end = marks_end
        self._timeout = timeout or _DEFAULT_TIMEOUT_S
        self._sink: Sink | None = None
        #: Whether the reader has everything; only then is a change written when it happens.
        self._is_caught_up = False
        #: Whether the history that it has to go on with is gone.
        self._is_lost = False
        self._timer_cancels: list[Callable[[], None]] = []
        self.on_stopped: Callable[[], None] | None = None

    @property
    def version(self) -> int:
        """Everything up to this version was told."""
        return self._version

    # The stream as the connection sees it

    @property
    def buffered_bytes(self) -> int:
        """What is kept for this reader alone: which objects there were in the beginning, as far as it has not read."""
        return _ENTRY_BYTES * self._initial_left

    def start(self, sink: Sink) -> None:
        """Begin: what is there, then what comes."""
        self._sink = sink
        self._watches.attach(self)
        self._timer_cancels.append(self._watches.timers.after(self._timeout, self._end))
        if self._bookmarks:
            early = max(self._timeout - _BOOKMARK_BEFORE_END_S, _BOOKMARK_SOON_S)
            self._schedule_bookmark(min(early, _BOOKMARK_INTERVAL_S))
        self.resume()

    @property
    def has_pending_data(self) -> bool:
        """Whether there is anything that the reader was not told yet."""
        return self._sink is not None and not self._is_caught_up

    def resume(self) -> None:
        """Write the next piece of what the reader was not told yet."""
        if self._sink is None or self._is_caught_up:
            return
        events, size = [], 0
        try:
            for event in self._pending_events():
                events.append(event)
                size += len(event)
                if size >= _PIECE_BYTES:
                    break
            else:
                self._is_caught_up = True
        except Failure:
            self._is_lost = True  # as in `tell`
        if events:
            self._sink.write(b"".join(events))
        if self._is_lost:
            self._end()

    def stop(self) -> None:
        """The reader is gone."""
        self._sink = None
        self._is_caught_up = False
        self._watches.detach(self)
        for cancel in self._timer_cancels:
            cancel()
        self._timer_cancels.clear()
        if self.on_stopped is not None:
            self.on_stopped()
            self.on_stopped = None

    # Writing

    def on_change(self, change: Change, texts: EncodedObjectCache, now: Instant) -> None:
        """Write a change that just happened, unless the reader is behind or it does not concern this watch."""
        if not self._is_caught_up or change.version <= self._version or self._sink is None:
            return
        try:
            event = event_for(change, self.selection)
            if event is not None:
                if not self._sink.writable:
                    # Everything before was told, however long ago that was.
                    self._is_caught_up, self._version = False, change.version - 1
                    return
                kind, value = event
                self._sink.write(
                    self.encoder.wrap_event(kind, texts.encode_body(self.encoder, value, change.version, now))
                )
        except Failure:
            # Whoever should have converted the object did not; the client will hear why when it lists again.
            self._end()
        self._version = change.version

    def _pending_events(self) -> Iterator[bytes]:
        """Yield what the reader was not told yet: the initial objects, their end, and the history since."""
        now = self._watches.now()
        for value, version in self._initial:
            self._initial_left -= 1
            yield self.encoder.wrap_event(ADDED, self.encoder.encode_body(value, version, now))
        if self._pending_initial_events_end:
            self._pending_initial_events_end = False
            yield self.encoder.bookmark(self._version, INITIAL_EVENTS_END)
        try:
            missed = self._watches.store.batches_since(min(self._version, self._watches.store.version))
        except Compacted:
            self._is_lost = True
            yield self.encoder.error(
                f"too old resource version: {self._version} ({self._watches.store.oldest_version})"
            )
            return
        for batch in missed:
            if batch.kind != self.storage:
                continue
            for change in batch.changes():
                if change.version <= self._version:
                    continue
                event = event_for(change, self.selection)
                self._version = change.version
                if event is not None:
                    kind, value = event
                    yield self.encoder.wrap_event(
                        kind, self._watches.encoded_objects.encode_body(self.encoder, value, change.version, now)
                    )

    def _schedule_bookmark(self, seconds: float) -> None:
        self._timer_cancels.append(self._watches.timers.after(seconds, self._send_bookmark))

    def _send_bookmark(self) -> None:
        """Tell how far the client has come, so that it can resume from there even if nothing concerns it."""
        if self._is_caught_up and self._sink is not None and self._sink.writable:
            self._version = max(self._version, self._watches.store.version)
            self._sink.write(self.encoder.bookmark(self._version, {}))
        self._schedule_bookmark(_BOOKMARK_INTERVAL_S)

    def _end(self) -> None:
        sink = self._sink
        self.stop()
        if sink is not None:
            sink.close()


class WatchHub:
    """All watches, and what they are told."""

    def __init__(self, store: Store, timers: Timers, now: Callable[[], Instant]) -> None:
        self.store = store
        self.timers = timers
        self.now = now
        self.encoded_objects = EncodedObjectCache()
        #: Only kinds that are watched now: custom ones come and go.
        self._by_storage: dict[str, dict[Watch, None]] = {}
        store.subscribe_all(self._on_changes)

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

    def _on_changes(self, batch: Batch, now: Instant) -> None:
        watches = self._by_storage.get(batch.kind)
        if watches is None:
            return
        for change in batch.changes():
            for watch in list(watches):
                watch.on_change(change, self.encoded_objects, now)
