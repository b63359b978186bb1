"""Signals from outside, such as the end of a pod, to the actors of a Batsim."""

from __future__ import annotations

from batkube.batsim.simgrid.actors import Actor, ActorKernel


class ActorSignal:
    """A signal that an actor waits for by yielding it, and that code outside of the actors sends.

    The wait counts as an activity that begins when the actor starts to wait, so activities of one date end in Batsim's
    order.
    """

    def __init__(self) -> None:
        self._waiting: tuple[Actor, int] | None = None
        #: Values that were sent while no actor waited.
        self._undelivered: list[object] = []

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Resume the actor with the next value, at once if there is one."""
        if self._undelivered:
            kernel.resume(actor, self._undelivered.pop(0))
        else:
            self._waiting = actor, kernel.next_number()

    def send(self, kernel: ActorKernel, value: object) -> None:
        """Resume the waiting actor with `value` at the current date, or keep the value for the next wait."""
        if self._waiting is None:
            self._undelivered.append(value)
            return
        (actor, number), self._waiting = self._waiting, None
        kernel.book(kernel.now, lambda: kernel.resume(actor, value), number)
