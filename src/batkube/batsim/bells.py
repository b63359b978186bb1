"""Bells: how what happens on a cluster reaches the actors of a Batsim."""

from __future__ import annotations

from batkube.batsim.actors import Actor, Scene


class Bell:
    """Something an actor waits for, which is rung from outside.

    It counts as begun when the actor began to wait: so what ends at one date ends in Batsim's order.
    """

    def __init__(self) -> None:
        self._waiting: tuple[Actor, int] | None = None
        #: What it was rung with while nobody waited.
        self._missed: list[object] = []

    def begin(self, scene: Scene, actor: Actor) -> None:
        """Let an actor wait for what the bell is rung with."""
        if self._missed:
            scene.go_on(actor, self._missed.pop(0))
        else:
            self._waiting = actor, scene.beginning()

    def ring(self, scene: Scene, what: object) -> None:
        """Let who waits go on at the present date, or at once whoever comes next."""
        if self._waiting is None:
            self._missed.append(what)
            return
        (actor, number), self._waiting = self._waiting, None
        scene.book(scene.now, lambda: scene.go_on(actor, what), number)
