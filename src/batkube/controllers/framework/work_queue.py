"""Work queue of a controller: keys of objects to reconcile, and when.

As in client-go (util/workqueue), a key is queued only once; a failed reconciliation is retried after 5 ms, 10 ms, … up
to 1000 seconds; success resets the back-off. A reconciliation that is suspended because a webhook must be called is
retried when the response has arrived.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from batkube.cluster.client import ApiError
from batkube.cluster.store import Key
from batkube.cluster.suspension import Suspended
from batkube.cluster.world import World
from batkube.kernel.agenda import Rank
from batkube.kernel.instants import Duration, Instant, seconds

log = logging.getLogger(__name__)

Reconcile = Callable[[Key, Instant], None]

#: Delay between a change and the reaction to it; real controllers need some milliseconds, too. As it is not zero, two
#: controllers that undo each other's changes cannot stop the clock.
REACTION_TIME: Duration = seconds("0.001")
_FIRST_RETRY_DELAY: Duration = seconds("0.005")
_MAX_RETRY_DELAY: Duration = seconds(1000)


class WorkQueue:
    """Calls `reconcile(key, now)` for each queued key, through the agenda."""

    def __init__(self, world: World, reconcile: Reconcile, reaction: Duration = REACTION_TIME) -> None:
        self._agenda = world.agenda
        self._suspension = world.suspension
        self._reconcile = reconcile
        self._reaction_time = reaction
        #: Maximum back-off delay.
        self.max_retry_delay = _MAX_RETRY_DELAY
        #: For each queued key: when it is due, and the number of its appointment.
        self._waiting: dict[Key, tuple[Instant, int]] = {}
        #: Consecutive failures of each key.
        self._failures: dict[Key, int] = {}

    def add(self, key: Key, now: Instant) -> None:
        """Reconcile `key` after the reaction time."""
        self.add_after(key, now, self._reaction_time)

    def add_after(self, key: Key, now: Instant, wait: Duration) -> None:
        """Reconcile `key` after `wait`, unless it is due earlier already; never at the current instant."""
        due = Instant(now + max(wait, self._reaction_time))
        waiting = self._waiting.get(key)
        if waiting is not None:
            if waiting[0] <= due:
                return
            self._agenda.cancel(waiting[1])
        self._waiting[key] = due, self._agenda.book(due, Rank.RECONCILE, functools.partial(self._process, key))

    def expedite(self, key: Key, now: Instant) -> None:
        """Reconcile `key` at once if it is queued: its object was deleted, and its appointment may be years ahead."""
        if key in self._waiting:
            self.add(key, now)

    def _process(self, key: Key, now: Instant) -> None:
        del self._waiting[key]
        try:
            with self._suspension.allow(True):
                self._reconcile(key, now)
        except Suspended as suspension:
            suspension.when_answered(functools.partial(self.add, key))
        except ApiError as error:
            log.debug("%s will be reconciled again: %s", key, error.message)
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            # From 2^18 on the maximum delay applies anyway.
            self.add_after(key, now, min(Duration(_FIRST_RETRY_DELAY << min(failures, 18)), self.max_retry_delay))
        else:
            self._failures.pop(key, None)
