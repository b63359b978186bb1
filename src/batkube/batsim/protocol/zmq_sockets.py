"""The one module that does ZeroMQ: both ends of the protocol's request and reply."""

from __future__ import annotations

from collections.abc import Callable

import zmq
from zmq.utils.monitor import recv_monitor_message

from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.instants import human_duration
from batkube.kernel.stopwatch import Stopwatch

#: How often somebody who waits looks whether the other side still lives.
_POLL_INTERVAL_MS = 100
#: How long somebody has to be gone to have left: a process that we started ends meanwhile, and has more to say.
_DISCONNECT_GRACE_S = 0.5
#: How long a last message may take to be sent after its socket is closed.
_LINGER_MS = 1000


class _ConnectionMonitor:
    """Whether somebody is at the other side of a socket, as far as its connections tell."""

    _FAILED_HANDSHAKES = zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._monitor = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED | self._FAILED_HANDSHAKES
        )
        self._count = 0
        self._has_connected = self._is_foreign_protocol = False
        self._disconnected_for = Stopwatch()

    def poll(self) -> None:
        """Take note of who has come and gone."""
        while self._monitor.poll(0):
            event = recv_monitor_message(self._monitor)["event"]
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._has_connected = True
                self._count += 1
            elif event == zmq.EVENT_DISCONNECTED:
                self._count = max(0, self._count - 1)
                self._disconnected_for = Stopwatch()
            else:
                self._is_foreign_protocol = True

    @property
    def has_connected(self) -> bool:
        """Whether anybody was there at all."""
        return self._has_connected

    @property
    def has_disconnected(self) -> bool:
        """Whether somebody was there, and nobody has been for a moment."""
        return self._has_connected and not self._count and self._disconnected_for.real_s > _DISCONNECT_GRACE_S

    @property
    def is_foreign_protocol(self) -> bool:
        """Whether who is there does not speak ZeroMQ."""
        return self._is_foreign_protocol and not self._has_connected

    def close(self) -> None:
        """Look no more."""
        self._socket.disable_monitor()
        self._monitor.close(0)


class Requester:
    """Batsim's end: sends a message and waits for its reply."""

    def __init__(
        self, endpoint: str, patience_ns: int | None = None, is_alive: Callable[[], str | None] = lambda: None
    ) -> None:
        """`is_alive` returns None while the other side lives, and else what there is to say of its end.

        Without `patience_ns` a reply may take for ever, as with Batsim.
        """
        self._endpoint = endpoint
        self._timeout_ns = patience_ns
        self._exit_message = is_alive
        self._context = zmq.Context()
        self._socket = _with_timeouts(self._context.socket(zmq.REQ))
        self._socket.setsockopt(zmq.LINGER, 0)
        self._monitor = _ConnectionMonitor(self._socket)
        #: Real seconds that were spent waiting for replies.
        self.waited_s = 0.0
        #: Whether the last message has its reply.
        self.has_reply = True
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise _bad_endpoint(endpoint, error) from None

    def request(self, text: str) -> bytes:
        """Send a message, and return the reply to it. Raises RunFailed when none comes."""
        stopwatch = Stopwatch()
        self.has_reply = False
        message = text.encode()
        while not self._try_send(message):
            self._check(stopwatch)
        while (reply := _try_receive(self._socket)) is None:
            self._check(stopwatch)
        self.waited_s += stopwatch.real_s
        self.has_reply = True
        return reply

    def _try_send(self, message: bytes) -> bool:
        try:
            self._socket.send(message)
        except zmq.Again:
            return False
        return True

    def _check(self, stopwatch: Stopwatch) -> None:
        """Give up where no answer can come any more, or none came for too long. Raises RunFailed."""
        last_words = self._exit_message()
        if last_words is not None:
            raise RunFailed(last_words)
        self._monitor.poll()
        if self._monitor.has_disconnected and not self._socket.poll(0):
            raise RunFailed(f"the scheduler at {self._endpoint} has gone, and left a message without an answer")
        if self._monitor.is_foreign_protocol:
            raise RunFailed(
                f"who listens at {self._endpoint} does not speak ZeroMQ, and so is no scheduler of Batsim's"
            )
        waited_ns = round(stopwatch.real_s * 1e9)
        if self._timeout_ns is not None and waited_ns > self._timeout_ns:
            who = f"the scheduler at {self._endpoint} has not answered"
            if not self._monitor.has_connected:
                who = f"no scheduler has listened at {self._endpoint}"
            raise RunFailed(f"{who} for {human_duration(self._timeout_ns)} (real time)")

    def close(self) -> None:
        """Let go of the socket."""
        self._monitor.close()
        self._socket.close()
        self._context.term()


class Replier:
    """The scheduler's end: waits for messages, and replies to each."""

    def __init__(self, endpoint: str) -> None:
        self._context = zmq.Context()
        self._socket = _with_timeouts(self._context.socket(zmq.REP))
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        self._monitor = _ConnectionMonitor(self._socket)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            raise _bad_endpoint(endpoint, error) from None
        #: Where it listens: the port is known even where the endpoint left it open.
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def receive(self, check: Callable[[float], None]) -> bytes:
        """Return the next message; `check` is called now and then with the real seconds waited, and may raise."""
        stopwatch = Stopwatch()
        while (message := _try_receive(self._socket)) is None:
            check(stopwatch.real_s)
        return message

    @property
    def has_disconnected(self) -> bool:
        """Whether a Batsim was there and has gone, and nothing that it said is left to be heard."""
        self._monitor.poll()
        return self._monitor.has_disconnected and not self._socket.poll(0)

    def reply(self, text: str) -> None:
        """Answer the message that was received last."""
        self._socket.send(text.encode())

    def close(self) -> None:
        """Let go of the socket once the last reply is sent."""
        self._monitor.close()
        self._socket.close()
        self._context.term()


def _with_timeouts(socket: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
    """Return a socket that waits for a moment, and not for ever: to wait so costs half of asking whether to."""
    socket.setsockopt(zmq.SNDTIMEO, _POLL_INTERVAL_MS)
    socket.setsockopt(zmq.RCVTIMEO, _POLL_INTERVAL_MS)
    return socket


def _try_receive(socket: zmq.Socket[bytes]) -> bytes | None:
    """Return the next message, one of several parts as if it were whole; None if none comes within a moment."""
    try:
        message = socket.recv()
    except zmq.Again:
        return None
    return message if not socket.rcvmore else b"".join([message, *socket.recv_multipart()])


def free_endpoint() -> str:
    """Return an endpoint on the loopback that nobody uses; the scheduler is the one to listen there."""
    replier = Replier("tcp://127.0.0.1:*")
    replier.close()
    return replier.endpoint


def _bad_endpoint(endpoint: str, error: zmq.ZMQError) -> InputError:
    return InputError(
        endpoint, problem=f"is no endpoint to use: {error.strerror}", remedy="write tcp://127.0.0.1:28000"
    )
