"""Records Events about objects, as `kubectl describe` and `kubectl events` show them.

A repeated event increments a count instead of creating an object. A component that reports many events about an object
is throttled, as in client-go, so that the work for one object is bounded. Most components use core/v1 Events (with
`count` and two timestamps; client-go: tools/record), kube-scheduler those of events.k8s.io (with `eventTime`, an action
and a `series`; client-go: tools/events), which are not throttled. The store has one object for both views.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal, NamedTuple

from batkube.cluster.client import ApiError, Client
from batkube.cluster.object_meta import key_of
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import UNIX_START, Duration, Instant, rfc3339, rfc3339_micro, seconds

EVENT = "events"

EventType = Literal["Normal", "Warning"]

#: How many events a component may record about an object at once, and how long it takes until it may record another
#: (client-go: tools/record/events_cache.go, defaultSpamBurst and defaultSpamQPS).
_MAX_BURST = 25
_REFILL_TIME: Duration = seconds(300)
#: How many events, and objects with events, a component caches (maxLruCacheEntries).
_MAX_CACHED = 4096
#: A repetition after this time is a new event: kube-apiserver deletes events after an hour (--event-ttl).
TTL: Duration = seconds(3600)


class EventNote(NamedTuple):
    """The content of an event, without the object that it is about."""

    type: EventType
    reason: str
    message: str
    #: The action that the component took or tried; only events.k8s.io has it.
    action: str = ""
    #: The part of the object that the event is about, such as `spec.containers{main}`.
    field_path: str = ""
    #: The node that reports the event, if not the component's own host.
    host: str = ""


class EventRecorder:
    """Records events in the name of one component."""

    def __init__(
        self, world: World, client: Client, component: str, *, host: str = "", as_series: bool = False
    ) -> None:
        """`as_series` selects the form of events.k8s.io. A world without event readers gets no events."""
        self._store = world.store
        self._client = client
        self._component = component
        self._host = host
        self._as_series = as_series
        self._has_event_readers = world.has_event_readers
        self._suspension = world.suspension
        #: The keys of recent events by identity (object, type, reason, message, …), least recently used first.
        self._event_keys: OrderedDict[tuple[str, ...], Key] = OrderedDict()
        #: The identities by key, to drop the entry of an event that is deleted.
        self._identities: dict[Key, tuple[str, ...]] = {}
        #: For each object, when it may have another `_MAX_BURST` events at once; least recently used first.
        self._refilled: OrderedDict[tuple[str, str], Instant] = OrderedDict()
        #: Repetitions by identity that were dropped since the event was last written.
        self._dropped: dict[tuple[str, ...], int] = {}
        #: The nanosecond in the name of the latest event; it only increases.
        self._latest_number = 0
        if world.has_event_readers:
            world.store.subscribe(EVENT, self._on_events_changed)

    def _on_events_changed(self, batch: Batch, now: Instant) -> None:
        if batch.type is DELETED:
            for key in batch.keys:
                identity = self._identities.pop(key, ())
                self._event_keys.pop(identity, None)
                self._dropped.pop(identity, None)

    def record(self, about: KubeObject, storage: str, note: EventNote, now: Instant) -> None:
        """Record an event about an object of kind `storage`. A rejected event is lost, as in client-go."""
        if not self._has_event_readers:
            return
        identity = (about["metadata"]["uid"], *note)
        key = self._event_keys.get(identity)
        if not self._as_series and not self._admits(identity[0], note.host, now):
            if key is not None:
                self._dropped[identity] = self._dropped.get(identity, 0) + 1
            return
        previous = None if key is None else self._store.get(EVENT, key)
        try:
            # Never suspend here: the caller has acted already and would not record the event a second time.
            with self._suspension.allow(False):
                if previous is not None:
                    self._client.update(
                        EVENT, self._with_repetition(previous, self._dropped.pop(identity, 0), now), now
                    )
                    self._event_keys.move_to_end(identity)
                    return
                event = self._client.create(EVENT, self._new_event(about, storage, note, now), now)
                self._event_keys[identity] = key = key_of(event)
                self._identities[key] = identity
        except ApiError:
            self._forget(identity)
        if len(self._event_keys) > _MAX_CACHED:
            self._forget(next(iter(self._event_keys)))

    def _admits(self, uid: str, host: str, now: Instant) -> bool:
        """Return whether another event about an object may be recorded now: a token bucket for each object.

        client-go: tools/record/events_cache.go, EventSourceObjectSpamFilter.
        """
        refilled = max(now, self._refilled.pop((uid, host), now))
        is_admitted = refilled - now <= (_MAX_BURST - 1) * _REFILL_TIME
        self._refilled[uid, host] = Instant(refilled + _REFILL_TIME) if is_admitted else refilled
        if len(self._refilled) > _MAX_CACHED:
            self._refilled.popitem(last=False)
        return is_admitted

    def _forget(self, identity: tuple[str, ...]) -> None:
        key = self._event_keys.pop(identity, None)
        self._dropped.pop(identity, None)
        if key is not None:
            self._identities.pop(key, None)

    def _with_repetition(self, event: KubeObject, dropped: int, now: Instant) -> KubeObject:
        if not self._as_series:
            return {**event, "count": event.get("count", 1) + dropped + 1, "lastTimestamp": rfc3339(now)}
        count = event.get("series", {}).get("count", 1) + 1
        return {**event, "series": {"count": count, "lastObservedTime": rfc3339_micro(now)}}

    def _new_event(self, about: KubeObject, storage: str, note: EventNote, now: Instant) -> KubeObject:
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        involved = {
            "kind": about["kind"],
            "namespace": metadata.get("namespace"),
            "name": metadata["name"],
            "uid": metadata["uid"],
            "apiVersion": about["apiVersion"],
            "resourceVersion": str(self._store.version_of(storage, key_of(about)) or ""),
            "fieldPath": note.field_path,
        }
        event: KubeObject = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": self._unused_name(namespace, metadata["name"], now), "namespace": namespace},
            "involvedObject": {field: value for field, value in involved.items() if value},
            "reason": note.reason,
            "message": note.message,
            "type": note.type,
        }
        form = self._series_fields(note.action, now) if self._as_series else self._core_fields(note.host, now)
        return {**event, **form}

    def _core_fields(self, host: str, now: Instant) -> KubeObject:
        host = host or self._host
        return {
            "source": {"component": self._component, "host": host} if host else {"component": self._component},
            "firstTimestamp": rfc3339(now),
            "lastTimestamp": rfc3339(now),
            "count": 1,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": host,
        }

    def _series_fields(self, action: str, now: Instant) -> KubeObject:
        return {
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": rfc3339_micro(now),
            "action": action,
            "reportingComponent": self._component,
            "reportingInstance": f"{self._component}-{self._host}",
        }

    def _unused_name(self, namespace: str, name: str, now: Instant) -> str:
        """Return `NAME.TIME`, with the time in hexadecimal nanoseconds, increased until the name is not taken.

        client-go: tools/record/event.go, makeEvent.
        """
        number = max(now - UNIX_START, self._latest_number + 1)
        while self._store.get(EVENT, Key(f"{namespace}/{name}.{number:x}")) is not None:
            number += 1
        self._latest_number = number
        return f"{name}.{number:x}"
