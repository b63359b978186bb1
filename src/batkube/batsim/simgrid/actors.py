"""Actors that meet in mailboxes, in the order in which SimGrid lets them act.

Batsim is a handful of SimGrid actors, and which events share a message, and in which order, follows from how SimGrid
lets actors act. So that order is imitated here, and the rest of the package is written as Batsim is.

    what is due at the earliest date ends ─▶ those who waited for it act, in that order ─▶ what they ask for begins …

* Actors that are ready act in *rounds*: each until it asks for something. Only when all have acted is it looked at what
  they asked for, in the same order. So nobody sees in its own round what another has just put into a mailbox.
* A message takes a *transfer*, which begins when one actor puts and another gets, and ends in a later round, even where
  it takes no time. Both sides then go on, in the order in which they came to the mailbox.
* Whatever ends at one date ends in the order in which it began: sleeps, messages, parallel tasks (SimGrid: L07 keeps
  all of its actions in one list).
* Much of what actors do for themselves is asked of the kernel, too, and costs them a round (`KernelCall`).
"""

from __future__ import annotations

import heapq
import operator
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Protocol

from batkube.kernel.instants import START, Duration, Instant

NO_TIME = Duration(0)


class Simcall(Protocol):
    """What an actor can ask for."""

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Arrange that the actor goes on once it has what it asks for."""


ActorCode = Generator[Simcall, object, None]
"""What an actor does: it yields what it asks for, and is sent the answer."""

ActorRoutine = Generator[Simcall, object, int]
"""Part of what an actor does; its result is a return code."""


class WaitQueue(Protocol):
    """Where actors wait for each other."""

    def cancel_put(self, actor: Actor) -> None:
        """Somebody goes who waited there."""


class Actor:
    """Somebody who acts, waits, or has gone."""

    __slots__ = ("host", "is_ended", "mailbox", "pending", "script")

    def __init__(self, script: ActorCode, host: str) -> None:
        self.script = script
        #: Where it lives: messages between hosts may take time.
        self.host = host
        #: What it waits for, when that is a matter of time; None in a mailbox, and when it is ready.
        self.pending: Activity | None = None
        #: Whether somebody ended it: what it asked for is not looked at any more.
        self.is_ended = False
        #: Where it waits to be rid of a message, if it does.
        self.mailbox: WaitQueue | None = None


class Activity:
    """Something that ends at a date, unless it is given up before."""

    __slots__ = ("is_over", "is_sleep", "on_end")

    def __init__(self, on_end: Callable[[], None], *, is_sleep: bool = False) -> None:
        """A sleep ends at the first moment of its date: SimGrid wakes a nanosecond early (surf/precision)."""
        self.on_end = on_end
        self.is_sleep = is_sleep
        self.is_over = False


class ActivityModel(Protocol):
    """Something whose dates change while time goes on: the work that actors wait for."""

    def due(self) -> Instant | None:
        """Return when something ends next, as far as is known."""

    def complete_due(self, now: Instant) -> Iterable[tuple[int, int, Callable[[], None]]]:
        """Let end what is due: yield the moment and the number of each beginning, and what follows from the end."""

    def update(self, now: Instant) -> None:
        """Work out what the acts of this instant mean for the dates."""


class ActorKernel:
    """Where actors act."""

    def __init__(self, transfer_ns: Callable[[str, str], float] = lambda source, target: 0.0) -> None:
        """`transfer_ns` tells how long a message takes from host to host."""
        self.now = START
        #: How much later than `now` it is, in messages that take less than a nanosecond.
        self.moment = 0
        #: What else ends at dates, after what was booked for them.
        self.model: ActivityModel | None = None
        self.transfer_ns = transfer_ns
        #: Told of each host on which something ends: SimGrid's meters are read then.
        self.on_host_activity_end: Callable[[str, Instant], None] = lambda host, now: None
        self._ready: deque[tuple[Actor, object]] = deque()
        #: A heap: date, moment, number of the beginning, activity.
        self._dates: list[tuple[Instant, int, int, Activity]] = []
        self._last_number = 0

    def spawn(self, script: ActorCode, host: str) -> Actor:
        """Have somebody act from the next round on."""
        actor = Actor(script, host)
        self._ready.append((actor, None))
        return actor

    def resume(self, actor: Actor, answer: object = None) -> None:
        """Let somebody who waited act in the next round."""
        actor.pending = None
        self._ready.append((actor, answer))

    def kill(self, actor: Actor) -> None:
        """Have somebody stop for good; what it waits for, for a date or to be rid of a message, is given up."""
        if actor.pending is not None:
            actor.pending.is_over = True
            self.report_host_activity_end(actor.host)
        if actor.mailbox is not None:
            actor.mailbox.cancel_put(actor)
        actor.is_ended = True
        self._ready = deque(entry for entry in self._ready if entry[0] is not actor)
        actor.script.close()

    def report_host_activity_end(self, *hosts: str) -> None:
        """Something ends on hosts."""
        for host in hosts:
            self.on_host_activity_end(host, self.now)

    def book(
        self,
        at: Instant,
        on_end: Callable[[], None],
        number: int | None = None,
        *,
        is_sleep: bool = False,
        moments: int = 0,
    ) -> Activity:
        """Begin something that ends at a date, and `moments` later; `number` if it had begun before that was known."""
        activity = Activity(on_end, is_sleep=is_sleep)
        number = self.next_number() if number is None else number
        heapq.heappush(self._dates, (at, self.moment + moments, number, activity))
        return activity

    def next_number(self) -> int:
        """Take note that something begins whose end is not known yet, and return its number."""
        self._last_number += 1
        return self._last_number

    def advance_to(self, now: Instant) -> None:
        """Let time go on to `now`, before which nothing is due."""
        self.now = max(self.now, now)

    @property
    def due(self) -> Instant | None:
        """The date of what ends next; None when nobody can act any more."""
        if self._ready:
            return self.now
        dates = self._dates
        while dates and dates[0][3].is_over:
            heapq.heappop(dates)
        booked = dates[0][0] if dates else None
        other = None if self.model is None else self.model.due()
        return booked if other is None or (booked is not None and booked <= other) else other

    def step(self, now: Instant) -> None:
        """Let what is due first at `now` end, and everybody act who can."""
        self.now = now
        if self.model is not None:
            for moment, number, on_end in self.model.complete_due(now):
                heapq.heappush(self._dates, (now, moment, number, Activity(on_end)))
        ends = [*self._pop_due(now)]
        if len(ends) > 1:
            ends.sort(key=operator.itemgetter(0))
        for _, activity in ends:
            if not activity.is_over:
                activity.is_over = True
                activity.on_end()
        while self._ready:
            self._run_round()
        if self.model is not None:
            self.model.update(now)

    def _pop_due(self, now: Instant) -> Iterator[tuple[int, Activity]]:
        """Yield what ends, and the number of its beginning; the rest of this date is for later."""
        dates, due = self._dates, []
        while dates and dates[0][0] <= now:
            entry = heapq.heappop(dates)
            if not entry[3].is_over:
                due.append(entry)
        if due:
            self.moment = due[0][1]
        for entry in due:
            _, moment, number, activity = entry
            if activity.is_sleep or moment <= self.moment:
                yield number, activity
            else:
                heapq.heappush(dates, entry)

    def _run_round(self) -> None:
        """One round."""
        ready, self._ready = self._ready, deque()
        wishes: list[tuple[Actor, Simcall]] = []
        while ready:
            actor, answer = ready.popleft()
            try:
                wishes.append((actor, actor.script.send(answer)))
            except StopIteration:
                continue
        for actor, wish in wishes:
            if not actor.is_ended:
                wish.handle(self, actor)


class Sleep:
    """Wait for a while; no time at all is no wait (SimGrid: sleep_for returns at once)."""

    __slots__ = ("is_work", "length", "moments")

    def __init__(self, length: Duration, *, moments: int = 0, is_work: bool = False) -> None:
        """`moments`: so many more; as many less as it is later than its date, for who waits for a date.

        `is_work`: something is computed meanwhile.
        """
        self.length = length
        self.is_work = is_work
        self.moments = moments

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Wake the actor when it is time."""

        def wake() -> None:
            scene.report_host_activity_end(actor.host)
            scene.resume(actor)

        actor.pending = scene.book(
            Instant(scene.now + self.length), wake, is_sleep=not self.is_work, moments=self.moments
        )


class KernelCall:
    """Have the kernel do something at once, and go on in the next round (SimGrid: simcall_answered)."""

    __slots__ = ("_action",)

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        self._action = act

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Do it."""
        self._action()
        scene.resume(actor)


class Spawn:
    """Have another actor act; both go on in the next round, the new one first."""

    __slots__ = ("host", "script")

    def __init__(self, script: ActorCode, host: str) -> None:
        self.script = script
        self.host = host

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Let both act."""
        newcomer = scene.spawn(self.script, self.host)
        scene.resume(actor, newcomer)


class Kill:
    """Have another actor stop."""

    __slots__ = ("other",)

    def __init__(self, other: Actor) -> None:
        self.other = other

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """End the other one, and go on."""
        scene.kill(self.other)
        scene.resume(actor)
