"""Expiry of events one hour after their last update (kube-apiserver: --event-ttl).

Beyond a maximum number, the oldest events are deleted earlier. Real components limit the rate of their events, so that
bursts of pods do not fill the store (client-go: tools/record/events_cache.go, EventSourceObjectSpamFilter).
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict

from batkube.cluster.client import ApiError, Client
from batkube.cluster.event_recorder import EVENT, TTL
from batkube.cluster.store import ADDED, MODIFIED, Batch, Key
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Instant

#: Maximum number of events.
MAX_EVENTS = 50_000


class EventExpiry:
    """Deletes expired events. Each write of an event restarts its hour, so the queue is always sorted."""

    def __init__(self, world: World, client: Client, max_events: int = MAX_EVENTS) -> None:
        self._agenda = world.agenda
        self._client = client
        #: Expiry time of each event, earliest first.
        self._due: OrderedDict[Key, Instant] = OrderedDict()
        self._max_events = max_events
        #: Whether an appointment is booked at the expiry of an event, and whether one is booked for an overflow.
        self._is_expiry_booked = self._is_overflow_booked = False
        world.store.subscribe(EVENT, self._on_events_changed)

    def _on_events_changed(self, batch: Batch, now: Instant) -> None:
        for key in batch.keys:
            self._due.pop(key, None)
            if batch.type in (ADDED, MODIFIED):
                self._due[key] = Instant(now + TTL)
        self._book(now)

    def _book(self, now: Instant) -> None:
        if len(self._due) > self._max_events and not self._is_overflow_booked:
            self._is_overflow_booked = True
            self._agenda.book(now, Rank.RECONCILE, self._reduce)
        if self._due and not self._is_expiry_booked:
            self._is_expiry_booked = True
            self._agenda.book(next(iter(self._due.values())), Rank.RECONCILE, self._expire)

    def _reduce(self, now: Instant) -> None:
        """Delete the oldest events beyond the maximum number."""
        while len(self._due) > self._max_events:
            self._delete_oldest(now)
        self._is_overflow_booked = False

    def _expire(self, now: Instant) -> None:
        """Delete expired events."""
        while self._due and next(iter(self._due.values())) <= now:
            self._delete_oldest(now)
        self._is_expiry_booked = False
        self._book(now)

    def _delete_oldest(self, now: Instant) -> None:
        key, _ = self._due.popitem(last=False)
        with contextlib.suppress(ApiError):
            self._client.delete(EVENT, key, now)
