"""The ZeroMQ sockets of both ends of the protocol; no other module uses ZeroMQ."""

from __future__ import annotations

from collections.abc import Callable

import zmq
from zmq.utils.monitor import recv_monitor_message

from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.instants import human_duration
from batkube.kernel.stopwatch import Stopwatch

#: The interval at which a waiting socket checks whether the peer is alive.
_POLL_INTERVAL_MS = 100
#: How long the peer must be disconnected to count as gone: the exit of a process of ours, which explains more, is
#: noticed in this time.
_DISCONNECT_GRACE_S = 0.5
#: How long a closed socket may take to send its last message.
_LINGER_MS = 1000


class _ConnectionMonitor:
    """Monitors whether the peer of a socket is connected."""

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
        """Process the pending connection events."""
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
        """Whether a peer has ever connected."""
        return self._has_connected

    @property
    def has_disconnected(self) -> bool:
        """Whether a peer has connected, and none has been connected for a while."""
        return self._has_connected and not self._count and self._disconnected_for.real_s > _DISCONNECT_GRACE_S

    @property
    def is_foreign_protocol(self) -> bool:
        """Whether only programs that do not use ZeroMQ have connected."""
        return self._is_foreign_protocol and not self._has_connected

    def close(self) -> None:
        """Stop monitoring."""
        self._socket.disable_monitor()
        self._monitor.close(0)


class Requester:
    """Batsim's end of the protocol: sends a message and waits for the reply."""

    def __init__(
        self, endpoint: str, timeout_ns: int | None = None, exit_message: Callable[[], str | None] = lambda: None
    ) -> None:
        """`exit_message` returns None while the peer runs, and then why it has ended.

        Without `timeout_ns`, replies may take any time, as in Batsim.
        """
        self._endpoint = endpoint
        self._timeout_ns = timeout_ns
        self._exit_message = exit_message
        self._context = zmq.Context()
        self._socket = _with_timeouts(self._context.socket(zmq.REQ))
        self._socket.setsockopt(zmq.LINGER, 0)
        self._monitor = _ConnectionMonitor(self._socket)
        #: The real time spent waiting for replies, in seconds.
        self.waited_s = 0.0
        #: Whether the last message has a reply.
        self.has_reply = True
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise _bad_endpoint(endpoint, error) from None

    def request(self, text: str) -> bytes:
        """Send a message and return the reply. Raise RunFailed if there is none."""
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
        """Raise RunFailed if the peer has ended or disconnected, or if the timeout is over."""
        exit_message = self._exit_message()
        if exit_message is not None:
            raise RunFailed(exit_message)
        self._monitor.poll()
        if self._monitor.has_disconnected and not self._socket.poll(0):
            raise RunFailed(f"the scheduler at {self._endpoint} disconnected without a reply to the last message")
        if self._monitor.is_foreign_protocol:
            raise RunFailed(
                f"the program at {self._endpoint} does not use ZeroMQ, so it is not a scheduler of Batsim's protocol"
            )
        waited_ns = round(stopwatch.real_s * 1e9)
        if self._timeout_ns is not None and waited_ns > self._timeout_ns:
            problem = f"no reply from the scheduler at {self._endpoint}"
            if not self._monitor.has_connected:
                problem = f"no scheduler listens at {self._endpoint}: no connection"
            raise RunFailed(f"{problem} for {human_duration(self._timeout_ns)} (real time)")

    def close(self) -> None:
        """Close the socket."""
        self._monitor.close()
        self._socket.close()
        self._context.term()


class Replier:
    """The scheduler's end of the protocol: waits for messages, and replies to each."""

    def __init__(self, endpoint: str) -> None:
        self._context = zmq.Context()
        self._socket = _with_timeouts(self._context.socket(zmq.REP))
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        self._monitor = _ConnectionMonitor(self._socket)
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            raise _bad_endpoint(endpoint, error) from None
        #: The endpoint with its port, even if the port was chosen by the system.
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def receive(self, check: Callable[[float], None]) -> bytes:
        """Return the next message; call `check` regularly with the real seconds waited, which may raise."""
        stopwatch = Stopwatch()
        while (message := _try_receive(self._socket)) is None:
            check(stopwatch.real_s)
        return message

    @property
    def has_disconnected(self) -> bool:
        """Whether a Batsim has disconnected, and all its messages have been received."""
        self._monitor.poll()
        return self._monitor.has_disconnected and not self._socket.poll(0)

    def reply(self, text: str) -> None:
        """Reply to the last message."""
        self._socket.send(text.encode())

    def close(self) -> None:
        """Close the socket after sending the last reply."""
        self._monitor.close()
        self._socket.close()
        self._context.term()


def _with_timeouts(socket: zmq.Socket[bytes]) -> zmq.Socket[bytes]:
    """Set timeouts, and return the socket. Waiting with a timeout takes half the time of polling and receiving."""
    socket.setsockopt(zmq.SNDTIMEO, _POLL_INTERVAL_MS)
    socket.setsockopt(zmq.RCVTIMEO, _POLL_INTERVAL_MS)
    return socket


def _try_receive(socket: zmq.Socket[bytes]) -> bytes | None:
    """Return the next message, with its parts joined; None if there is none within the timeout."""
    try:
        message = socket.recv()
    except zmq.Again:
        return None
    return message if not socket.rcvmore else b"".join([message, *socket.recv_multipart()])


def free_endpoint() -> str:
    """Return an unused endpoint on the loopback interface, for a scheduler to listen on."""
    replier = Replier("tcp://127.0.0.1:*")
    replier.close()
    return replier.endpoint


def _bad_endpoint(endpoint: str, error: zmq.ZMQError) -> InputError:
    return InputError(
        endpoint, problem=f"cannot be used as an endpoint: {error.strerror}", remedy="write tcp://127.0.0.1:28000"
    )
