"""One exchange with the scheduler: the simulation stands still while it thinks, then each event is done at its date.

Imitated: Batsim 4.2.1, src/network.cpp and the reader of src/protocol.cpp. The scheduler counts as ready again at the
`now` of its reply, and not before all of its events were passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from batkube.batsim.protocol.decoder import SCHEDULER_EVENT_TYPES, MalformedMessage, decode
from batkube.batsim.protocol.encoder import encode
from batkube.batsim.protocol.messages import Event, Message
from batkube.batsim.server.batsim_server import ServerHandler
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel, Sleep
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.state.errors import BatsimAbort
from batkube.kernel.instants import Duration, Instant, as_float_s


class SchedulerConnection(Protocol):
    """Who is asked: the other end of the wire."""

    def request(self, text: str) -> bytes:
        """Send a message, and return the reply to it. Raises RunFailed when none comes."""


class Conversation:
    """Carries messages to the scheduler, and its events to the server."""

    def __init__(
        self,
        scene: ActorKernel,
        mailbox: Mailbox,
        scheduler: SchedulerConnection,
        deed: Callable[[Event], ServerHandler],
        ready: ServerHandler,
    ) -> None:
        """`deed` tells how the server answers an event, `ready` what it does when the scheduler has done deciding."""
        self._scene = scene
        self._mailbox = mailbox
        self._scheduler = scheduler
        self._handler_for = deed
        self._ready = ready

    def exchange(self, message: Message) -> ActorCode:
        """Ask the scheduler, and pass on what it says."""
        reply = self._request_reply(message)
        for number, event in enumerate(reply.events):
            if event.at > reply.now:
                raise BatsimAbort(
                    f"Invalid JSON message: timestamp {as_float_s(event.at):g} of event {number} should be lower than "
                    f"or equal to now={as_float_s(reply.now):g}."
                )
            yield from self._forward(event.at, self._handler_for(event))
        yield from self._forward(reply.now, self._ready)

    def _request_reply(self, message: Message) -> Message:
        try:
            reply = decode(self._scheduler.request(encode(message)))
        except MalformedMessage as error:
            raise BatsimAbort(str(error)) from None
        for number, event in enumerate(reply.events):
            if event.TYPE not in SCHEDULER_EVENT_TYPES:
                raise BatsimAbort(f"Invalid JSON message: event {number} has an unknown 'type' value '{event.TYPE}'")
        return reply

    def _forward(self, at: Instant, news: ServerHandler) -> ActorCode:
        if at > self._scene.now:
            yield Sleep(Duration(at - self._scene.now), moments=-self._scene.moment)
        yield from self._mailbox.put(news)
