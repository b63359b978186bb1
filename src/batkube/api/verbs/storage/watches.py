"""Watches: send the changes of a kind to clients, in order, starting at a requested version.

A watch is a cursor into the store's history. While its client keeps up, each change is written when it happens, encoded
once for all watches of the same form. Nothing is buffered for a slow client: its watch pauses and resumes from the
history when the client is ready. If the history was compacted meanwhile, the watch ends with 410 Gone, as when a client
reconnects too late (Kubernetes: apiserver/pkg/storage/cacher). A slow client therefore costs only the bytes in its
connection and, until it has read them, the list of the initial objects, which are shared with the store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Protocol

from batkube.api.requests.messages import Sink, Timers
from batkube.api.requests.statuses import Failure
from batkube.api.verbs.storage.selection import Selection
from batkube.cluster.store import ADDED, DELETED, MODIFIED, Batch, Change, Compacted, Entry, KubeObject, Store
from batkube.kernel.instants import Instant

ERROR = "ERROR"
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}

#: The approximate size of a list entry with an object (shared) and its version.
_ENTRY_BYTES = 80
#: How much is written at a time: less than a millisecond of work, and as much as fits into a TLS record.
_PIECE_BYTES = 16 * 1024
#: The size of the cache of encoded objects, for clients that are slightly behind.
_MAX_CACHED_BYTES = 4 * 1024 * 1024
_BOOKMARK_INTERVAL_S = 60.0
_BOOKMARK_BEFORE_END_S = 2.0
_BOOKMARK_SOON_S = 1.0
_DEFAULT_TIMEOUT_S = 2700.0
"""The timeout of a watch without `timeoutSeconds`; kube-apiserver draws 1800 to 3600 s (--min-request-timeout)."""


class EventEncoder(Protocol):
    """Encodes the events of a watch; watches of equal `identity` share encoded objects."""

    content_type: str
    #: Equal for watches with equally encoded events; None for a Table, whose first event differs.
    identity: object

    def encode_body(self, value: KubeObject, version: int, now: Instant) -> bytes:
        """Encode the object of an event."""

    def wrap_event(self, kind: str, body: bytes) -> bytes:
        """Return the event that contains an encoded object."""

    def bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        """Return a BOOKMARK event."""

    def error(self, message: str) -> bytes:
        """Return the ERROR event (410) of a watch whose history was compacted."""


class EncodedEventCache:
    """Caches encoded events, so that watches of equal form share them, even if some are slightly behind."""

    def __init__(self, limit: int = _MAX_CACHED_BYTES) -> None:
        self._limit = limit
        #: By form, event type, version and id of the object (a change has two objects), oldest first. The history keeps
        #: the objects alive as long as their changes can be sent, so ids are unique.
        self._encoded: OrderedDict[tuple[object, str, int, int], bytes] = OrderedDict()
        self._size = 0

    def encode(self, encoder: EventEncoder, event: Event, version: int, now: Instant) -> bytes:
        """Encode the event of the change to `version`, or return it from the cache."""
        kind, value = event
        if encoder.identity is None:
            return encoder.wrap_event(kind, encoder.encode_body(value, version, now))
        key = (encoder.identity, kind, version, id(value))
        text = self._encoded.get(key)
        if text is None:
            text = self._encoded[key] = encoder.wrap_event(kind, encoder.encode_body(value, version, now))
            self._size += len(text)
            while self._size > self._limit:
                self._size -= len(self._encoded.popitem(last=False)[1])
        return text


Event = tuple[str, KubeObject]
"""The type and the object of an event."""


def event_for(change: Change, selection: Selection) -> Event | None:
    """Return the event type and object of `change` for a client that watches `selection`, or None.

    An object that no longer matches is DELETED for this client, with its previous state (Kubernetes:
    apiserver/pkg/storage/cacher/cache_watcher.go, convertToWatchEvent).
    """
    if not selection.matches_key(change.key):
        return None
    if not selection.is_partial:
        return change.type, change.object
    if change.type is DELETED:
        return (DELETED, change.object) if selection.matches_object(change.object) else None
    matches = selection.matches_object(change.object)
    matched_before = change.previous is not None and selection.matches_object(change.previous)
    if matches:
        return (MODIFIED if matched_before else ADDED), change.object
    if matched_before:
        assert change.previous is not None
        return DELETED, change.previous
    return None


class Watch:
    """One client's position in the store's history, and the stream that continues from it."""

    def __init__(
        self,
        hub: WatchHub,
        storage: str,
        selection: Selection,
        encoder: EventEncoder,
        version: int,
        *,
        initial: list[Entry] | None = None,
        bookmarks: bool = False,
        send_initial_events_end: bool = False,
        timeout: float = 0.0,
    ) -> None:
        self.content_type = encoder.content_type
        self.headers: tuple[tuple[str, str], ...] = ()
        self.storage = storage
        self.selection = selection
        self.encoder = encoder
        self._watches = hub
        #: All changes up to this version were sent.
        self._version = version
        self._initial = iter(initial or ())
        self._initial_left = len(initial or ())
        self._bookmarks = bookmarks
        self._pending_initial_events_end = send_initial_events_end
        self._timeout = timeout or _DEFAULT_TIMEOUT_S
        self._sink: Sink | None = None
        #: Whether everything was sent; only then is a change written when it happens.
        self._is_caught_up = False
        #: Whether the watch cannot continue, because its history was compacted or a conversion failed.
        self._is_lost = False
        self._timer_cancels: list[Callable[[], None]] = []
        self.on_stopped: Callable[[], None] | None = None

    @property
    def version(self) -> int:
        """All changes up to this version were sent."""
        return self._version

    # Stream

    @property
    def buffered_bytes(self) -> int:
        """The memory held for this client alone: the list of unsent initial objects."""
        return _ENTRY_BYTES * self._initial_left

    def start(self, sink: Sink) -> None:
        """Start the watch: initial objects first, then changes."""
        self._sink = sink
        self._watches.attach(self)
        self._timer_cancels.append(self._watches.timers.after(self._timeout, self._end))
        if self._bookmarks:
            early = max(self._timeout - _BOOKMARK_BEFORE_END_S, _BOOKMARK_SOON_S)
            self._schedule_bookmark(min(early, _BOOKMARK_INTERVAL_S))
        self.resume()

    @property
    def has_pending_data(self) -> bool:
        """Whether there is anything unsent."""
        return self._sink is not None and not self._is_caught_up

    def resume(self) -> None:
        """Write the next piece of what is unsent."""
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
            self._is_lost = True  # as in `on_change`
        if events:
            self._sink.write(b"".join(events))
        if self._is_lost:
            self._end()

    def stop(self) -> None:
        """Stop the watch, because the client has disconnected or the stream has ended."""
        self._sink = None
        self._is_caught_up = False
        self._watches.detach(self)
        for cancel in self._timer_cancels:
            cancel()
        self._timer_cancels.clear()
        if self.on_stopped is not None:
            self.on_stopped()
            self.on_stopped = None

    # Events

    def on_change(self, change: Change, cache: EncodedEventCache, now: Instant) -> None:
        """Write a change that just happened, unless the client is behind or the watch does not select the object."""
        if not self._is_caught_up or change.version <= self._version or self._sink is None:
            return
        try:
            event = event_for(change, self.selection)
            if event is not None:
                if not self._sink.writable:
                    # Everything before this change was sent.
                    self._is_caught_up, self._version = False, change.version - 1
                    return
                self._sink.write(cache.encode(self.encoder, event, change.version, now))
        except Failure:
            # The conversion webhook failed. The client gets the error when it lists again.
            self._end()
        self._version = change.version

    def _pending_events(self) -> Iterator[bytes]:
        """Yield unsent events: the initial objects, the bookmark after them, and the history since then."""
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
                    yield self._watches.encoded_events.encode(self.encoder, event, change.version, now)

    def _schedule_bookmark(self, seconds: float) -> None:
        self._timer_cancels.append(self._watches.timers.after(seconds, self._send_bookmark))

    def _send_bookmark(self) -> None:
        """Send a bookmark, so that the client can resume from the current version even without matching changes."""
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
    """All watches of a server; distributes the changes of the store to them."""

    def __init__(self, store: Store, timers: Timers, now: Callable[[], Instant]) -> None:
        self.store = store
        self.timers = timers
        self.now = now
        self.encoded_events = EncodedEventCache()
        #: Watches by kind, without empty entries, since custom kinds are added and removed.
        self._by_storage: dict[str, dict[Watch, None]] = {}
        store.subscribe_all(self._on_changes)

    def attach(self, watch: Watch) -> None:
        """Send changes to `watch` from now on."""
        self._by_storage.setdefault(watch.storage, {})[watch] = None

    def detach(self, watch: Watch) -> None:
        """Remove `watch`."""
        watches = self._by_storage.get(watch.storage, {})
        watches.pop(watch, None)
        if not watches:
            self._by_storage.pop(watch.storage, None)

    def count(self) -> int:
        """Return the number of open watches."""
        return sum(map(len, self._by_storage.values()))

    def _on_changes(self, batch: Batch, now: Instant) -> None:
        watches = self._by_storage.get(batch.kind)
        if watches is None:
            return
        for change in batch.changes():
            for watch in list(watches):
                watch.on_change(change, self.encoded_events, now)
