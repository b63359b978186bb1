"""The one module that does ZeroMQ: both ends of the protocol's request and reply."""

from __future__ import annotations

from collections.abc import Callable

import zmq

from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.instants import human
from batkube.kernel.stopwatch import Stopwatch

#: How often somebody who waits looks whether the other side still lives.
_LOOK_MS = 100
#: How long a last message may take to be sent after its socket is closed.
_LINGER_MS = 1000


class Requester:
    """Batsim's end: sends a message and waits for its reply."""

    def __init__(
        self, endpoint: str, patience_ns: int | None = None, is_alive: Callable[[], str | None] = lambda: None
    ) -> None:
        """`is_alive` returns None while the other side lives, and else what there is to say of its end.

        Without `patience_ns` a reply may take for ever, as with Batsim.
        """
        self._endpoint = endpoint
        self._patience_ns = patience_ns
        self._is_alive = is_alive
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REQ)
        self._socket.setsockopt(zmq.LINGER, 0)
        #: Real seconds that were spent waiting for replies.
        self.waited = 0.0
        #: Whether the last message has its reply.
        self.was_answered = True
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise _unusable(endpoint, error) from None

    def ask(self, text: str) -> bytes:
        """Send a message, and return the reply to it. Raises RunFailed when none comes."""
        stopwatch = Stopwatch()
        self.was_answered = False
        self._send(text, stopwatch)
        while not self._socket.poll(_LOOK_MS):
            self._check(stopwatch, "has not answered")
        self.waited += stopwatch.real_s
        self.was_answered = True
        return self._socket.recv()

    def _send(self, text: str, stopwatch: Stopwatch) -> None:
        """Send once there is somebody to send to."""
        while not self._socket.poll(_LOOK_MS, zmq.POLLOUT):
            self._check(stopwatch, "does not listen")
        self._socket.send(text.encode())

    def _check(self, stopwatch: Stopwatch, complaint: str) -> None:
        last_words = self._is_alive()
        if last_words is not None:
            raise RunFailed(last_words)
        waited_ns = round(stopwatch.real_s * 1e9)
        if self._patience_ns is not None and waited_ns > self._patience_ns:
            raise RunFailed(f"the scheduler at {self._endpoint} {complaint} for {human(self._patience_ns)} (real time)")

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()
        self._context.term()


class Replier:
    """The scheduler's end: waits for messages, and replies to each."""

    def __init__(self, endpoint: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            raise _unusable(endpoint, error) from None
        #: Where it listens: the port is known even where the endpoint left it open.
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def receive(self, check: Callable[[float], None]) -> bytes:
        """Return the next message; `check` is called now and then with the real seconds waited, and may raise."""
        stopwatch = Stopwatch()
        while not self._socket.poll(_LOOK_MS):
            check(stopwatch.real_s)
        return self._socket.recv()

    def reply(self, text: str) -> None:
        """Answer the message that was received last."""
        self._socket.send(text.encode())

    def close(self) -> None:
        """Let go of the socket once the last reply is sent."""
        self._socket.close()
        self._context.term()


def free_endpoint() -> str:
    """Return an endpoint on the loopback that nobody uses; the scheduler is the one to listen there."""
    replier = Replier("tcp://127.0.0.1:*")
    replier.close()
    return replier.endpoint


def _unusable(endpoint: str, error: zmq.ZMQError) -> InputError:
    return InputError(
        endpoint, problem=f"is no endpoint to use: {error.strerror}", remedy="write tcp://127.0.0.1:28000"
    )
