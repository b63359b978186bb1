"""Mailboxes: actors meet in them to exchange messages.

A message is a *transfer*. It begins when one actor has put and another has got, and ends in a later round, even if it
takes no time. Both actors are then resumed, in the order in which they came to the mailbox.

Finding a mailbox by its name takes a round (SimGrid 3.32, Engine::mailbox_by_name_or_create in src/s4u/s4u_Engine.cpp).
So a job may be killed just before it sends a message.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

from batkube.batsim.simgrid.actors import Actor, ActorCode, ActorKernel, KernelCall, Simcall
from batkube.kernel.instants import Duration, Instant


class Mailbox:
    """The queue of actors that wait for a receiver, or for a message."""

    def __init__(self) -> None:
        self._puts: deque[tuple[Actor, object]] = deque()
        self._gets: deque[Actor] = deque()

    def is_empty(self) -> Generator[Simcall, object, bool]:
        """Return whether no message waits for a receiver; one that is being transferred does not count."""
        yield KernelCall()
        return not self._puts

    def put(self, message: object) -> ActorCode:
        """Send a message; return when it has been received."""
        yield KernelCall()
        yield Put(self, message)

    def get(self) -> Generator[Simcall, object, object]:
        """Wait for a message, and return it."""
        yield KernelCall()
        return (yield Get(self))

    def handle_put(self, kernel: ActorKernel, sender: Actor, message: object) -> None:
        """Begin the transfer if a receiver waits; otherwise queue the sender."""
        if self._gets:
            receiver = self._gets.popleft()
            _transfer(kernel, sender, receiver, message, (receiver, sender))
        else:
            self._puts.append((sender, message))
            sender.mailbox = self

    def cancel_put(self, sender: Actor) -> None:
        """Remove a sender that was killed, and its message."""
        self._puts = deque(entry for entry in self._puts if entry[0] is not sender)

    def handle_get(self, kernel: ActorKernel, receiver: Actor) -> None:
        """Begin the transfer if a sender waits; otherwise queue the receiver."""
        if self._puts:
            sender, message = self._puts.popleft()
            sender.mailbox = None
            _transfer(kernel, sender, receiver, message, (sender, receiver))
        else:
            self._gets.append(receiver)


def _transfer(kernel: ActorKernel, sender: Actor, receiver: Actor, message: object, order: tuple[Actor, Actor]) -> None:
    """Transfer a message, and resume both actors in `order` at its end."""

    def arrive() -> None:
        kernel.report_host_activity_end(sender.host, receiver.host)
        for actor in order:
            kernel.resume(actor, message if actor is receiver else None)

    exact_ns = kernel.transfer_ns(sender.host, receiver.host)
    length = Duration(round(exact_ns))
    # Over SimGrid's default loopback of 10 GB/s, a message takes 0.1 ns: what follows happens a microstep later.
    microsteps = int(length == 0 and exact_ns > 0)
    kernel.book(Instant(kernel.now + length), arrive, microsteps=microsteps)


class Put:
    """Send a message."""

    __slots__ = ("mailbox", "message")

    def __init__(self, mailbox: Mailbox, message: object) -> None:
        self.mailbox = mailbox
        self.message = message

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Resume the actor when the message has been received."""
        self.mailbox.handle_put(kernel, actor, self.message)


class Get:
    """Receive a message."""

    __slots__ = ("mailbox",)

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Resume the actor with the message."""
        self.mailbox.handle_get(kernel, actor)
