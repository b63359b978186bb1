"""Mailboxes: where actors meet to hand over messages.

A message takes a *transfer*, which begins when one actor puts and another gets, and ends in a later round, even where
it takes no time. Both sides then go on, in the order in which they came to the mailbox.

A mailbox is found by its name, which costs whoever looks for it a round (SimGrid 3.32:
Engine::mailbox_by_name_or_create); so a killer may come before the message that a job is about to send.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

from batkube.batsim.simgrid.actors import Actor, ActorCode, ActorKernel, KernelCall, Simcall
from batkube.kernel.instants import Duration, Instant


class Mailbox:
    """Where one who puts and one who gets meet."""

    def __init__(self) -> None:
        self._puts: deque[tuple[Actor, object]] = deque()
        self._gets: deque[Actor] = deque()

    def is_empty(self) -> Generator[Simcall, object, bool]:
        """Find out whether nobody waits to be rid of a message; one that is on its way does not count."""
        yield KernelCall()
        return not self._puts

    def put(self, message: object) -> ActorCode:
        """Be rid of a message."""
        yield KernelCall()
        yield Put(self, message)

    def get(self) -> Generator[Simcall, object, object]:
        """Have a message."""
        yield KernelCall()
        return (yield Get(self))

    def handle_put(self, scene: ActorKernel, sender: Actor, message: object) -> None:
        """Somebody came with a message."""
        if self._gets:
            receiver = self._gets.popleft()
            _transfer(scene, sender, receiver, message, (receiver, sender))
        else:
            self._puts.append((sender, message))
            sender.mailbox = self

    def cancel_put(self, sender: Actor) -> None:
        """Somebody goes whose message nobody has taken: it is never told."""
        self._puts = deque(entry for entry in self._puts if entry[0] is not sender)

    def handle_get(self, scene: ActorKernel, receiver: Actor) -> None:
        """Somebody came for a message."""
        if self._puts:
            sender, message = self._puts.popleft()
            sender.mailbox = None
            _transfer(scene, sender, receiver, message, (sender, receiver))
        else:
            self._gets.append(receiver)


def _transfer(scene: ActorKernel, sender: Actor, receiver: Actor, message: object, order: tuple[Actor, Actor]) -> None:
    """Carry a message; who came first to the mailbox goes on first."""

    def arrive() -> None:
        scene.report_host_activity_end(sender.host, receiver.host)
        for actor in order:
            scene.resume(actor, message if actor is receiver else None)

    exact_ns = scene.transfer_ns(sender.host, receiver.host)
    length = Duration(round(exact_ns))
    # Over SimGrid's own loopback, of 10 GB/s, a message takes 0.1 ns: what follows is a moment later.
    moments = int(length == 0 and exact_ns > 0)
    scene.book(Instant(scene.now + length), arrive, moments=moments)


class Put:
    """Be rid of a message."""

    __slots__ = ("mailbox", "message")

    def __init__(self, mailbox: Mailbox, message: object) -> None:
        self.mailbox = mailbox
        self.message = message

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Wait until somebody has it."""
        self.mailbox.handle_put(scene, actor, self.message)


class Get:
    """Have a message."""

    __slots__ = ("mailbox",)

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Wait until it is there."""
        self.mailbox.handle_get(scene, actor)
