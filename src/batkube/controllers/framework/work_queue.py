"""The keys of objects that a controller must look at again, and when.

As client-go's workqueue: a key that waits already is not queued twice, a look that fails is tried again after 5 ms,
10 ms, … up to a thousand seconds as a rule, and one that succeeds forgets its failures. One that is broken off, because
a webhook is asked, is tried again when the answer is there.
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

#: From hearing of a change to acting on it. A real controller takes some milliseconds too; and because it is not zero,
#: two parties that undo each other's work can never keep the clock from moving.
REACTION_TIME: Duration = seconds("0.001")
_FIRST_RETRY_DELAY: Duration = seconds("0.005")
_MAX_RETRY_DELAY: Duration = seconds(1000)


class WorkQueue:
    """Calls `reconcile(key, now)` for each key queued, on the agenda."""

    def __init__(self, world: World, reconcile: Reconcile, reaction: Duration = REACTION_TIME) -> None:
        self._agenda = world.agenda
        self._breaks = world.suspension
        self._reconcile = reconcile
        self._reaction_time = reaction
        #: The most that is waited before a look that failed is tried again.
        self.max_retry_delay = _MAX_RETRY_DELAY
        #: When each waiting key is due, and the number of its appointment.
        self._waiting: dict[Key, tuple[Instant, int]] = {}
        #: How often in a row looking at a key has failed.
        self._failures: dict[Key, int] = {}

    def add(self, key: Key, now: Instant) -> None:
        """Look at `key` as soon as a controller reacts."""
        self.add_after(key, now, self._reaction_time)

    def add_after(self, key: Key, now: Instant, wait: Duration) -> None:
        """Look at `key` after `wait`, or earlier if it is due earlier already; never at this very moment."""
        due = Instant(now + max(wait, self._reaction_time))
        waiting = self._waiting.get(key)
        if waiting is not None:
            if waiting[0] <= due:
                return
            self._agenda.cancel(waiting[1])
        self._waiting[key] = due, self._agenda.book(due, Rank.RECONCILE, functools.partial(self._process, key))

    def expedite(self, key: Key, now: Instant) -> None:
        """Do not keep `key` for later, if it waits: the object is gone, and its next look may be years ahead."""
        if key in self._waiting:
            self.add(key, now)

    def _process(self, key: Key, now: Instant) -> None:
        del self._waiting[key]
        try:
            with self._breaks.allow(True):
                self._reconcile(key, now)
        except Suspended as wait:
            wait.when_answered(functools.partial(self.add, key))
        except ApiError as refusal:
            log.debug("%s will be looked at again: %s", key, refusal.message)
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
            # Beyond 2^18 the longest wait is reached anyway.
            self.add_after(key, now, min(Duration(_FIRST_RETRY_DELAY << min(failures, 18)), self.max_retry_delay))
        else:
            self._failures.pop(key, None)
