"""SimGrid's kernel and actors: which actor runs when, and in which order activities end.

Batsim consists of SimGrid actors. Which events share a message to the scheduler, and in which order, follows from how
SimGrid runs actors, so this module imitates it, and the rest of the package has the structure of Batsim.

    activities of the earliest date end ─▶ the actors that waited for them run ─▶ their simcalls are handled ─▶ …

* Actors run in *rounds*, each until its next simcall. The simcalls are handled after all actors of the round have run,
  in the same order (SimGrid 3.32, EngineImpl::run in src/kernel/EngineImpl.cpp). So no actor sees in its own round what
  another actor of that round has put into a mailbox.
* Simcalls that take no simulated time still take a round (`KernelCall`).
* Activities of one date (sleeps, messages, parallel tasks) end in the order in which they began, because SimGrid's L07
  model keeps them in one list (HostL07Model::update_actions_state in src/surf/ptask_L07.cpp).
"""

from __future__ import annotations

import heapq
import operator
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Protocol

from batkube.kernel.instants import START, Duration, Instant


class Simcall(Protocol):
    """A request of an actor to the kernel."""

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Handle the request, and arrange that the actor is resumed."""


ActorCode = Generator[Simcall, object, None]
"""The code of an actor: it yields simcalls, and receives their results."""

ActorRoutine = Generator[Simcall, object, int]
"""A part of an actor's code that returns a return code."""


class WaitQueue(Protocol):
    """A queue of actors that wait for a receiver."""

    def cancel_put(self, actor: Actor) -> None:
        """Remove an actor that was killed, and its message."""


class Actor:
    """An actor: its code, and what it waits for."""

    __slots__ = ("code", "host", "is_killed", "mailbox", "pending")

    def __init__(self, code: ActorCode, host: str) -> None:
        self.code = code
        #: The host on which it runs: messages between hosts may take time.
        self.host = host
        #: The activity that it waits for; None while it is ready or waits in a mailbox.
        self.pending: Activity | None = None
        #: Whether it was killed; its last simcall is then ignored.
        self.is_killed = False
        #: The mailbox in which it waits for a receiver, if any.
        self.mailbox: WaitQueue | None = None


class Activity:
    """Something that ends at a known date, unless it is cancelled."""

    __slots__ = ("is_over", "is_sleep", "on_end")

    def __init__(self, on_end: Callable[[], None], *, is_sleep: bool = False) -> None:
        """A sleep ends at the first microstep of its date: SimGrid ends sleeps a nanosecond early (surf/precision)."""
        self.on_end = on_end
        self.is_sleep = is_sleep
        self.is_over = False


class ActivityModel(Protocol):
    """A model of activities whose end dates change over time, such as parallel tasks."""

    def due(self) -> Instant | None:
        """Return when the next activity ends, according to what is known now."""

    def complete_due(self, now: Instant) -> Iterable[tuple[int, int, Callable[[], None]]]:
        """End the due activities: yield the microstep and number of their start, and the action at their end."""

    def update(self, now: Instant) -> None:
        """Recompute the end dates after the actors of this instant have run."""


class ActorKernel:
    """Runs actors and ends activities."""

    def __init__(self, transfer_ns: Callable[[str, str], float] = lambda source, target: 0.0) -> None:
        """`transfer_ns` returns how long a message takes from host to host."""
        self.now = START
        #: How many messages of less than a nanosecond have followed each other at `now`.
        self.microstep = 0
        #: Activities whose dates may change; at one date they end after those that were booked.
        self.model: ActivityModel | None = None
        self.transfer_ns = transfer_ns
        #: Called with each host on which an activity ends: SimGrid updates the energy meter of the host then.
        self.on_host_activity_end: Callable[[str, Instant], None] = lambda host, now: None
        self._ready: deque[tuple[Actor, object]] = deque()
        #: A heap: date, microstep, number of the start, activity.
        self._dates: list[tuple[Instant, int, int, Activity]] = []
        self._last_number = 0

    def spawn(self, code: ActorCode, host: str) -> Actor:
        """Create an actor, which runs from the next round on."""
        actor = Actor(code, host)
        self._ready.append((actor, None))
        return actor

    def resume(self, actor: Actor, result: object = None) -> None:
        """Schedule a waiting actor for the next round, with the result of its simcall."""
        actor.pending = None
        self._ready.append((actor, result))

    def kill(self, actor: Actor) -> None:
        """Kill an actor; cancel its activity, or the message that no actor has received yet."""
        if actor.pending is not None:
            actor.pending.is_over = True
            self.report_host_activity_end(actor.host)
        if actor.mailbox is not None:
            actor.mailbox.cancel_put(actor)
        actor.is_killed = True
        self._ready = deque(entry for entry in self._ready if entry[0] is not actor)
        actor.code.close()

    def report_host_activity_end(self, *hosts: str) -> None:
        """Report that an activity on these hosts ends."""
        for host in hosts:
            self.on_host_activity_end(host, self.now)

    def book(
        self,
        at: Instant,
        on_end: Callable[[], None],
        number: int | None = None,
        *,
        is_sleep: bool = False,
        microsteps: int = 0,
    ) -> Activity:
        """Begin an activity that ends at a date, `microsteps` after the current microstep.

        Pass `number` for an activity that has begun earlier (`next_number`).
        """
        activity = Activity(on_end, is_sleep=is_sleep)
        number = self.next_number() if number is None else number
        heapq.heappush(self._dates, (at, self.microstep + microsteps, number, activity))
        return activity

    def next_number(self) -> int:
        """Return the number of an activity that begins now; activities of one date end in this order."""
        self._last_number += 1
        return self._last_number

    def advance_to(self, now: Instant) -> None:
        """Advance the clock to `now`, before which nothing is due."""
        self.now = max(self.now, now)

    @property
    def due(self) -> Instant | None:
        """The date of the next event; None if no actor can run any more."""
        if self._ready:
            return self.now
        dates = self._dates
        while dates and dates[0][3].is_over:
            heapq.heappop(dates)
        booked = dates[0][0] if dates else None
        modelled = None if self.model is None else self.model.due()
        return booked if modelled is None or (booked is not None and booked <= modelled) else modelled

    def step(self, now: Instant) -> None:
        """End the activities of the first microstep of `now`, and run all actors that can run."""
        self.now = now
        if self.model is not None:
            for microstep, number, on_end in self.model.complete_due(now):
                heapq.heappush(self._dates, (now, microstep, number, Activity(on_end)))
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
        """Yield the activities of the first microstep, with the numbers of their start, and all sleeps of the date."""
        dates, due = self._dates, []
        while dates and dates[0][0] <= now:
            entry = heapq.heappop(dates)
            if not entry[3].is_over:
                due.append(entry)
        if due:
            self.microstep = due[0][1]
        for entry in due:
            _, microstep, number, activity = entry
            if activity.is_sleep or microstep <= self.microstep:
                yield number, activity
            else:
                heapq.heappush(dates, entry)

    def _run_round(self) -> None:
        ready, self._ready = self._ready, deque()
        simcalls: list[tuple[Actor, Simcall]] = []
        while ready:
            actor, result = ready.popleft()
            try:
                simcalls.append((actor, actor.code.send(result)))
            except StopIteration:
                continue
        for actor, simcall in simcalls:
            if not actor.is_killed:
                simcall.handle(self, actor)


class Sleep:
    """Sleep for a while. A duration of 0 still takes a round: callers skip it, as SimGrid's sleep_for does."""

    __slots__ = ("is_work", "length", "microsteps")

    def __init__(self, length: Duration, *, microsteps: int = 0, is_work: bool = False) -> None:
        """Pass the negated current microstep as `microsteps` to wait for a date; `is_work` if the host computes."""
        self.length = length
        self.is_work = is_work
        self.microsteps = microsteps

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Resume the actor at the end of the sleep."""

        def wake() -> None:
            kernel.report_host_activity_end(actor.host)
            kernel.resume(actor)

        actor.pending = kernel.book(
            Instant(kernel.now + self.length), wake, is_sleep=not self.is_work, microsteps=self.microsteps
        )


class KernelCall:
    """Run an action in the kernel; it takes a round and no time (SimGrid: simcall_answered)."""

    __slots__ = ("_action",)

    def __init__(self, action: Callable[[], None] = lambda: None) -> None:
        self._action = action

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Run the action."""
        self._action()
        kernel.resume(actor)


class Spawn:
    """Create another actor; both run in the next round, the new one first."""

    __slots__ = ("code", "host")

    def __init__(self, code: ActorCode, host: str) -> None:
        self.code = code
        self.host = host

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Create the actor, and return it to the caller."""
        child = kernel.spawn(self.code, self.host)
        kernel.resume(actor, child)


class Kill:
    """Kill another actor."""

    __slots__ = ("other",)

    def __init__(self, other: Actor) -> None:
        self.other = other

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Kill the other actor."""
        kernel.kill(self.other)
        kernel.resume(actor)
