"""Events are forgotten an hour after they were last seen, as kube-apiserver does (--event-ttl)."""

from __future__ import annotations

import contextlib
from collections import OrderedDict

from batkube.cluster.client import Client, Refused
from batkube.cluster.event_recorder import EVENT, TTL
from batkube.cluster.store import ADDED, MODIFIED, Batch, Key, Store
from batkube.kernel.agenda import Agenda, Rank
from batkube.kernel.instants import Instant


class EventExpiry:
    """Deletes old events. Every write of an event gives it another hour, so the queue is in order by itself."""

    def __init__(self, store: Store, agenda: Agenda, client: Client) -> None:
        self._store = store
        self._agenda = agenda
        self._client = client
        #: When each event goes, soonest first.
        self._due: OrderedDict[Key, Instant] = OrderedDict()
        self._is_booked = False
        store.listen(EVENT, self._hear)

    def _hear(self, batch: Batch, now: Instant) -> None:
        for key in batch.keys:
            self._due.pop(key, None)
            if batch.type in (ADDED, MODIFIED):
                self._due[key] = Instant(now + TTL)
        self._book()

    def _book(self) -> None:
        if self._due and not self._is_booked:
            self._is_booked = True
            self._agenda.book(next(iter(self._due.values())), Rank.RECONCILE, self._expire)

    def _expire(self, now: Instant) -> None:
        self._is_booked = False
        while self._due and next(iter(self._due.values())) <= now:
            key, _ = self._due.popitem(last=False)
            with contextlib.suppress(Refused):
                self._client.delete(EVENT, key, now)
        self._book()
