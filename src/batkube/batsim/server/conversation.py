"""The exchange of messages with the scheduler.

Simulated time stands still while the scheduler decides. Then each event of the reply is forwarded to the server at its
timestamp, and the scheduler is ready again at the `now` of the reply.

Imitated: Batsim 4.2.1, request_reply_scheduler_process in src/network.cpp and JsonProtocolReader in src/protocol.cpp.
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
    """A connection to a scheduler."""

    def request(self, text: str) -> bytes:
        """Send a message and return the reply. Raise RunFailed if there is none."""


class Conversation:
    """Sends messages to the scheduler, and forwards its events to the server."""

    def __init__(
        self,
        kernel: ActorKernel,
        mailbox: Mailbox,
        scheduler: SchedulerConnection,
        handler_for: Callable[[Event], ServerHandler],
        on_ready: ServerHandler,
    ) -> None:
        """`handler_for` returns the server's handler of an event, `on_ready` handles the end of the decisions."""
        self._kernel = kernel
        self._mailbox = mailbox
        self._scheduler = scheduler
        self._handler_for = handler_for
        self._on_ready = on_ready

    def exchange(self, message: Message) -> ActorCode:
        """Send a message, and forward the events of the reply."""
        reply = self._request_reply(message)
        for number, event in enumerate(reply.events):
            if event.at > reply.now:
                raise BatsimAbort(
                    f"Invalid JSON message: timestamp {as_float_s(event.at):g} of event {number} should be lower than "
                    f"or equal to now={as_float_s(reply.now):g}."
                )
            yield from self._forward(event.at, self._handler_for(event))
        yield from self._forward(reply.now, self._on_ready)

    def _request_reply(self, message: Message) -> Message:
        try:
            reply = decode(self._scheduler.request(encode(message)))
        except MalformedMessage as error:
            raise BatsimAbort(str(error)) from None
        for number, event in enumerate(reply.events):
            if event.TYPE not in SCHEDULER_EVENT_TYPES:
                raise BatsimAbort(f"Invalid JSON message: event {number} has an unknown 'type' value '{event.TYPE}'")
        return reply

    def _forward(self, at: Instant, handler: ServerHandler) -> ActorCode:
        """Put a handler into the server's mailbox at a date (Batsim: send_message_at_time)."""
        if at > self._kernel.now:
            yield Sleep(Duration(at - self._kernel.now), microsteps=-self._kernel.microstep)
        yield from self._mailbox.put(handler)
