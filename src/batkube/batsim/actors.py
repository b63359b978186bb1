"""Actors that meet in mailboxes, in the order in which SimGrid lets them act.

Batsim is a handful of SimGrid actors, and which events share a message, and in which order, follows from how SimGrid
lets actors act. So that order is imitated here, and the rest of the package is written as Batsim is.

    what is due at the earliest date ends ─▶ those who waited for it act, in that order ─▶ what they ask for begins …

* Actors that are ready act in *rounds*: each until it asks for something. Only when all have acted is it looked at what
  they asked for, in the same order. So nobody sees in its own round what another has just put into a mailbox.
* A message takes a *transfer*, which begins when one actor puts and another gets, and ends in a later round, even where
  it takes no time. Both sides then go on, in the order in which they came to the mailbox.
* Whatever ends at one date ends in the order in which it began (SimGrid: L07 keeps its actions in one list).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Generator
from typing import Protocol

from batkube.kernel.instants import START, Duration, Instant


class ActorWish(Protocol):
    """What an actor can ask for."""

    def begin(self, scene: Scene, actor: Actor) -> None:
        """Arrange that the actor goes on once it has what it asks for."""


Script = Generator[ActorWish, object, None]
"""What an actor does: it yields what it asks for, and is sent the answer."""

Work = Generator[ActorWish, object, int]
"""Part of what an actor does; its result is a return code."""


class Actor:
    """Somebody who acts, waits, or has gone."""

    __slots__ = ("host", "pending", "script")

    def __init__(self, script: Script, host: str) -> None:
        self.script = script
        #: Where it lives: messages between hosts may take time.
        self.host = host
        #: What it waits for, when that is a matter of time; None in a mailbox, and when it is ready.
        self.pending: Activity | None = None


class Activity:
    """Something that ends at a date, unless it is given up before."""

    __slots__ = ("is_over", "on_end")

    def __init__(self, on_end: Callable[[], None]) -> None:
        self.on_end = on_end
        self.is_over = False


class Clockwork(Protocol):
    """Something whose dates change while time goes on: the work that actors wait for."""

    def due(self) -> Instant | None:
        """Return when something ends next, as far as is known."""

    def advance(self, now: Instant) -> None:
        """Let end what is due, and those go on who waited for it."""

    def settle(self, now: Instant) -> None:
        """Work out what the acts of this instant mean for the dates."""


class Scene:
    """Where actors act."""

    def __init__(self, transfer_time: Callable[[str, str], Duration] = lambda source, target: Duration(0)) -> None:
        """`transfer_time` tells how long a message takes from host to host."""
        self.now = START
        #: What else ends at dates, after what was booked for them.
        self.clockwork: Clockwork | None = None
        self.transfer_time = transfer_time
        self._ready: deque[tuple[Actor, object]] = deque()
        #: A heap: date, number of the beginning, activity.
        self._dates: list[tuple[Instant, int, Activity]] = []
        self._begun = 0

    def enter(self, script: Script, host: str) -> Actor:
        """Have somebody act from the next round on."""
        actor = Actor(script, host)
        self._ready.append((actor, None))
        return actor

    def go_on(self, actor: Actor, answer: object = None) -> None:
        """Let somebody who waited act in the next round."""
        actor.pending = None
        self._ready.append((actor, answer))

    def end(self, actor: Actor) -> None:
        """Have somebody stop for good, whatever it waits for; only those who wait for a date may be ended."""
        if actor.pending is not None:
            actor.pending.is_over = True
        self._ready = deque(entry for entry in self._ready if entry[0] is not actor)
        actor.script.close()

    def book(self, at: Instant, on_end: Callable[[], None], number: int | None = None) -> Activity:
        """Begin something that ends at a date; `number` if it had begun before its end was known."""
        activity = Activity(on_end)
        heapq.heappush(self._dates, (at, self.beginning() if number is None else number, activity))
        return activity

    def beginning(self) -> int:
        """Take note that something begins whose end is not known yet, and return its number."""
        self._begun += 1
        return self._begun

    def reach(self, now: Instant) -> None:
        """Let time go on to `now`, before which nothing is due."""
        self.now = max(self.now, now)

    @property
    def due(self) -> Instant | None:
        """The date of what ends next; None when nobody can act any more."""
        if self._ready:
            return self.now
        dates = self._dates
        while dates and dates[0][2].is_over:
            heapq.heappop(dates)
        booked = dates[0][0] if dates else None
        other = None if self.clockwork is None else self.clockwork.due()
        return booked if other is None or (booked is not None and booked <= other) else other

    def step(self, now: Instant) -> None:
        """Let what is due at `now` end, and everybody act who can."""
        self.now = now
        dates, last = self._dates, self._begun
        while dates and dates[0][0] <= now and dates[0][1] <= last:
            activity = heapq.heappop(dates)[2]
            if not activity.is_over:
                activity.is_over = True
                activity.on_end()
        if self.clockwork is not None:
            self.clockwork.advance(now)
        while self._ready:
            self._act()
        if self.clockwork is not None:
            self.clockwork.settle(now)

    def _act(self) -> None:
        """One round."""
        ready, self._ready = self._ready, deque()
        wishes: list[tuple[Actor, ActorWish]] = []
        while ready:
            actor, answer = ready.popleft()
            try:
                wishes.append((actor, actor.script.send(answer)))
            except StopIteration:
                continue
        for actor, wish in wishes:
            wish.begin(self, actor)


class Sleep:
    """Wait for a while; no time at all is no wait (SimGrid: sleep_for returns at once)."""

    __slots__ = ("length",)

    def __init__(self, length: Duration) -> None:
        self.length = length

    def begin(self, scene: Scene, actor: Actor) -> None:
        """Wake the actor when it is time."""
        actor.pending = scene.book(Instant(scene.now + self.length), lambda: scene.go_on(actor))


class Enter:
    """Have another actor act; both go on in the next round, the new one first."""

    __slots__ = ("host", "script")

    def __init__(self, script: Script, host: str) -> None:
        self.script = script
        self.host = host

    def begin(self, scene: Scene, actor: Actor) -> None:
        """Let both act."""
        newcomer = scene.enter(self.script, self.host)
        scene.go_on(actor, newcomer)


class Leave:
    """Have another actor stop."""

    __slots__ = ("other",)

    def __init__(self, other: Actor) -> None:
        self.other = other

    def begin(self, scene: Scene, actor: Actor) -> None:
        """End the other one, and go on."""
        scene.end(self.other)
        scene.go_on(actor)


class Mailbox:
    """Where one who puts and one who gets meet."""

    def __init__(self) -> None:
        self._puts: deque[tuple[Actor, object]] = deque()
        self._gets: deque[Actor] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits to be rid of a message; one that is on its way does not count."""
        return not self._puts

    def put(self, message: object) -> Put:
        """Return the wish to be rid of a message."""
        return Put(self, message)

    def get(self) -> Get:
        """Return the wish for a message."""
        return Get(self)

    def offer(self, scene: Scene, sender: Actor, message: object) -> None:
        """Somebody came with a message."""
        if self._gets:
            receiver = self._gets.popleft()
            _transfer(scene, sender, receiver, message, (receiver, sender))
        else:
            self._puts.append((sender, message))

    def ask(self, scene: Scene, receiver: Actor) -> None:
        """Somebody came for a message."""
        if self._puts:
            sender, message = self._puts.popleft()
            _transfer(scene, sender, receiver, message, (sender, receiver))
        else:
            self._gets.append(receiver)


def _transfer(scene: Scene, sender: Actor, receiver: Actor, message: object, order: tuple[Actor, Actor]) -> None:
    """Carry a message; who came first to the mailbox goes on first."""

    def arrive() -> None:
        for actor in order:
            scene.go_on(actor, message if actor is receiver else None)

    length = scene.transfer_time(sender.host, receiver.host)
    scene.book(Instant(scene.now + length), arrive)


class Put:
    """Be rid of a message."""

    __slots__ = ("mailbox", "message")

    def __init__(self, mailbox: Mailbox, message: object) -> None:
        self.mailbox = mailbox
        self.message = message

    def begin(self, scene: Scene, actor: Actor) -> None:
        """Wait until somebody has it."""
        self.mailbox.offer(scene, actor, self.message)


class Get:
    """Have a message."""

    __slots__ = ("mailbox",)

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox

    def begin(self, scene: Scene, actor: Actor) -> None:
        """Wait until it is there."""
        self.mailbox.ask(scene, actor)
