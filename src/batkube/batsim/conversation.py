"""One exchange with the scheduler: the simulation stands still while it thinks, then each event is done at its date.

Imitated: Batsim 4.2.1, src/network.cpp and the reader of src/protocol.cpp. The scheduler counts as ready again at the
`now` of its reply, and not before all of its events were passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from batkube.batsim.actors import Scene, Script, Sleep
from batkube.batsim.mailboxes import Mailbox
from batkube.batsim.messages import Event, Message
from batkube.batsim.reading import SCHEDULERS_WORDS, Nonsense, read
from batkube.batsim.refusal import Refusal
from batkube.batsim.server import News
from batkube.batsim.text import written
from batkube.kernel.instants import Duration, Instant, as_float_s


class Scheduler(Protocol):
    """Who is asked: the other end of the wire."""

    def ask(self, text: str) -> bytes:
        """Send a message, and return the reply to it. Raises RunFailed when none comes."""


class Conversation:
    """Carries messages to the scheduler, and its events to the server."""

    def __init__(
        self,
        scene: Scene,
        mailbox: Mailbox,
        scheduler: Scheduler,
        deed: Callable[[Event], News],
        ready: News,
    ) -> None:
        """`deed` tells how the server answers an event, `ready` what it does when the scheduler has done deciding."""
        self._scene = scene
        self._mailbox = mailbox
        self._scheduler = scheduler
        self._deed = deed
        self._ready = ready

    def exchange(self, message: Message) -> Script:
        """Ask the scheduler, and pass on what it says."""
        reply = self._reply(message)
        for number, event in enumerate(reply.events):
            if event.at > reply.now:
                raise Refusal(
                    f"Invalid JSON message: timestamp {as_float_s(event.at):g} of event {number} should be lower than "
                    f"or equal to now={as_float_s(reply.now):g}."
                )
            yield from self._pass_on(event.at, self._deed(event))
        yield from self._pass_on(reply.now, self._ready)

    def _reply(self, message: Message) -> Message:
        try:
            reply = read(self._scheduler.ask(written(message)))
        except Nonsense as error:
            raise Refusal(str(error)) from None
        for number, event in enumerate(reply.events):
            if event.TYPE not in SCHEDULERS_WORDS:
                raise Refusal(f"Invalid JSON message: event {number} has an unknown 'type' value '{event.TYPE}'")
        return reply

    def _pass_on(self, at: Instant, news: News) -> Script:
        if at > self._scene.now:
            yield Sleep(Duration(at - self._scene.now), moments=-self._scene.moment)
        yield from self._mailbox.put(news)
