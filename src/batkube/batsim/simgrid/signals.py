"""Bells: how what happens on a cluster reaches the actors of a Batsim."""

from __future__ import annotations

from batkube.batsim.simgrid.actors import Actor, ActorKernel


class ActorSignal:
    """Something an actor waits for, which is rung from outside.

    It counts as begun when the actor began to wait: so what ends at one date ends in Batsim's order.
    """

    def __init__(self) -> None:
        self._waiting: tuple[Actor, int] | None = None
        #: What it was rung with while nobody waited.
        self._undelivered: list[object] = []

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Let an actor wait for what the bell is rung with."""
        if self._undelivered:
            scene.resume(actor, self._undelivered.pop(0))
        else:
            self._waiting = actor, scene.next_number()

    def send(self, scene: ActorKernel, what: object) -> None:
        """Let who waits go on at the present date, or at once whoever comes next."""
        if self._waiting is None:
            self._undelivered.append(what)
            return
        (actor, number), self._waiting = self._waiting, None
        scene.book(scene.now, lambda: scene.resume(actor, what), number)
