"""Clients that ask and do not read, or ask without end: what they cost, and what others notice of them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import socket
from collections.abc import Iterator

import pytest

from batkube.api.connections.event_loop.buffer_limit import BufferLimit
from batkube.api.connections.event_loop.fair_queue import FairQueue
from batkube.api.connections.event_loop.server_connections import EventLoopConnection, ServerConnections
from batkube.api.connections.protocol.connection import Connection, Phase
from batkube.api.connections.protocol.stream_limits import StreamLimits
from batkube.api.requests.messages import Request, Response
from batkube.api.requests.statuses import Failure
from batkube.serving.log_limit import rate_limited_log
from conformance.serving import Serving, serving
from hostile.attacked import Attacked, attacked, read_all, request, wait_until

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with attacked(tmp_path_factory.mktemp("serve"), "--bare") as running:
        running.ask("/openapi/v2")
        pod = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "x" * 2000}]}}
        body = json.dumps({"apiVersion": "v1", "kind": "Pod", **pod}).encode()
        with running.connect() as connection:
            for _ in range(1000):
                connection.sendall(request(PODS, "POST", body))
                connection.recv(1 << 20)
        yield running


@pytest.mark.parametrize("path", ["/openapi/v2", PODS, f"{PODS}?watch=true&resourceVersion=0"])
def test_answers_that_nobody_reads_cost_little(server: Attacked, path: str) -> None:
    before = server.memory_mb()
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            connection = stack.enter_context(server.connect())
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.send(request(path) * 500)
        answered = server.ask("/version")
        grown = server.memory_mb() - before

    assert answered.startswith(b"HTTP/1.1 200 ")
    # 20,000 answers of megabytes are asked for.
    assert grown < 250


def test_what_is_asked_in_one_breath_is_answered_in_order(server: Attacked) -> None:
    with server.connect() as connection:
        connection.sendall(
            request("/version")
            + request(PODS)
            + request("/readyz")
            + request("/livez", "GET", b"", "Connection: close")
        )
        connection.shutdown(socket.SHUT_WR)
        answered = read_all(connection)

    positions = [answered.index(part) for part in (b'"gitVersion"', b'"kind":"PodList"', b"\r\n\r\nok")]
    assert positions == sorted(positions)
    assert answered.count(b"HTTP/1.1 200 OK\r\n") == 4
    assert answered.endswith(b"Connection: close\r\n\r\nok")


class Echo:
    """Answers every request with its path, and a body as long as asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def handle(self, request: Request) -> Response:
        self.asked.append(request.path)
        return Response(200, b"x" * int(request.query_value("size", "0")))

    def too_large(self) -> Response:
        return Response(413, b"")


class SlowWire:
    """A client that reads when it is told to."""

    def __init__(self, connection: Connection) -> None:
        self.sent = bytearray()
        self.connection = connection
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.sent += data
        self.connection.pause_writing()

    def close(self) -> None:
        self.is_closed = True

    def set_write_buffer_limits(self, high: int | None = None) -> None:
        pass


def test_the_next_request_waits_until_the_last_answer_is_read() -> None:
    echo = Echo()
    connection = Connection(echo, set())
    wire = SlowWire(connection)
    connection.attach(wire)

    connection.data_received(b"".join(b"GET /%d?size=600000 HTTP/1.1\r\n\r\n" % number for number in range(100)))

    assert echo.asked == ["/0"]
    assert len(wire.sent) < 300_000
    while echo.asked == ["/0"]:
        before = len(wire.sent)
        connection.resume_writing()
        assert len(wire.sent) - before < 300_000
    assert echo.asked == ["/0", "/1"]
    assert before > 600_000


class Flooding:
    """Has requests without end, of which each takes its time."""

    def __init__(self, loop: SteppedLoop, name: str, left: int = 10**9, client: str = "") -> None:
        self.virtual_finish_s = 0.0
        self.client_key = client
        self._loop, self._name, self._left = loop, name, left

    @property
    def has_work(self) -> bool:
        return self._left > 0

    def process_next(self) -> None:
        self._left -= 1
        self._loop.now += self._loop.request_s
        self._loop.served.append(self._name)


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes when somebody works."""

    def __init__(self, request_s: float = 0.004) -> None:
        super().__init__()
        self.now, self.request_s = 1.0, request_s
        self.served: list[str] = []

    def time(self) -> float:
        return self.now

    def come_round(self) -> None:
        self.call_soon(self.stop)
        self.run_forever()


def test_a_first_request_passes_those_of_clients_that_ask_without_a_pause() -> None:
    loop = SteppedLoop()
    with contextlib.closing(loop):
        queue = FairQueue(loop)
        for number in range(500):
            queue.submit(Flooding(loop, f"flood-{number}"))
        while len(loop.served) < 1200:
            loop.come_round()
        loop.served.clear()

        queue.submit(Flooding(loop, "kubectl", left=1))
        loop.come_round()

    assert "kubectl" in loop.served[:2]


def test_a_client_does_not_wait_for_the_many_connections_of_another() -> None:
    loop = SteppedLoop()
    with contextlib.closing(loop):
        queue = FairQueue(loop)
        queue.submit(Flooding(loop, "before", left=1, client="mallory"))
        for number in range(1000):
            queue.submit(Flooding(loop, f"new-{number}", client="mallory"))
        queue.submit(Flooding(loop, "kubectl", left=3, client="alice"))
        for _ in range(6):
            loop.come_round()

    assert loop.served[:7].count("kubectl") == 3


def test_however_many_clients_there_are_those_that_are_quiet_are_forgotten() -> None:
    loop = SteppedLoop()
    with contextlib.closing(loop):
        queue = FairQueue(loop)
        for number in range(5000):
            queue.submit(Flooding(loop, "", left=1, client=f"client-{number}"))
            loop.come_round()

    assert len(queue._clients) < 1100


def test_sockets_are_looked_at_more_often_while_somebody_is_on_the_way() -> None:
    served = []
    for is_somebody_coming in (True, False):
        loop = SteppedLoop(request_s=0.0009)
        with contextlib.closing(loop):
            queue = FairQueue(loop, functools.partial(bool, is_somebody_coming))
            queue.submit(Flooding(loop, "flood"))
            loop.come_round()
            loop.served.clear()
            loop.come_round()
            served.append(len(loop.served))

    assert served == [2, 5]


def test_clients_that_ask_without_a_pause_are_served_alike() -> None:
    loop = SteppedLoop()
    with contextlib.closing(loop):
        queue = FairQueue(loop)
        for number in range(7):
            queue.submit(Flooding(loop, str(number)))
        while len(loop.served) < 700:
            loop.come_round()

    shares = [loop.served.count(str(number)) for number in range(7)]
    # The very first request found nobody waiting, and was not counted.
    assert max(shares) - min(shares) <= 2


class Keeper:
    """A connection for which something is kept."""

    def __init__(self, held_bytes: int) -> None:
        self.buffered_bytes = held_bytes
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def test_beyond_what_is_kept_for_all_the_one_goes_that_moved_least_lately() -> None:
    buffers = BufferLimit(limit=100)
    first, second, third = Keeper(40), Keeper(40), Keeper(40)
    for keeper in (first, second, first, third):
        buffers.update(keeper)

    assert [keeper.is_aborted for keeper in (first, second, third)] == [False, True, False]
    assert buffers.total_bytes == 80


def test_a_single_answer_may_be_larger_than_all_that_is_kept() -> None:
    buffers = BufferLimit(limit=100)
    large = Keeper(1000)
    buffers.update(large)

    assert not large.is_aborted


def test_a_user_with_too_many_streams_is_told_to_come_back_later() -> None:
    with serving() as server:
        server.inside(lambda: setattr(server.api._server, "_stream_limits", StreamLimits(limit=2)))
        watches = [connected(server) for _ in range(2)]
        for watch in watches:
            watch.sendall(request(f"{PODS}?watch=true"))
            assert watch.recv(12) == b"HTTP/1.1 200"
        with connected(server) as third:
            third.sendall(request(f"{PODS}?watch=true"))
            refused = third.recv(65536)
            watches.pop().close()
            assert wait_until(lambda: is_admitted(server))
        watches.pop().close()

    assert refused.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"Retry-After: 1\r\n" in refused
    assert b'"reason":"TooManyRequests"' in refused


def connected(server: Serving) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=10)


def is_admitted(server: Serving) -> bool:
    with connected(server) as connection:
        connection.sendall(request(f"{PODS}?watch=true"))
        return connection.recv(12) == b"HTTP/1.1 200"


def test_streams_that_have_ended_are_not_counted() -> None:
    audience = StreamLimits(limit=1)
    for _ in range(3):
        stream = Ended()
        audience.admit(stream, "alice")
        with pytest.raises(Failure, match="try again later"):
            audience.admit(Ended(), "alice")
        audience.admit(Ended(), f"bob {_}")
        assert stream.on_stopped is not None
        stream.on_stopped()


class Ended:
    """A stream of which nothing is asked but its end."""

    on_stopped = None


LATE = {
    Phase.HEAD: b"GET / HT",
    Phase.BODY: b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf",
    Phase.IDLE: b"GET / HTTP/1.1\r\n\r\n",
    Phase.READER: b"GET /?size=50000000 HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("phase", list(LATE))
def test_a_client_that_keeps_us_waiting_is_left(phase: Phase) -> None:
    async def kept_waiting() -> int:
        loop = asyncio.get_running_loop()
        crowd = ServerConnections(loop, {phase: 0.01})
        server = await loop.create_server(lambda: EventLoopConnection(Echo(), crowd), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.transport.pause_reading()
        writer.write(LATE[phase])
        for _ in range(2000):
            await asyncio.sleep(0.01)
            if crowd.connections and not was_there:
                was_there.append(True)
            if was_there and not crowd.connections:
                break
        left = len(crowd.connections)
        writer.transport.abort()
        server.close()
        crowd.close()
        await asyncio.sleep(0.01)
        return left

    was_there: list[bool] = []
    assert asyncio.run(kept_waiting()) == 0


def test_what_happens_a_thousand_times_is_logged_some_times_and_briefly(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("batkube.test")
    with rate_limited_log():
        for _ in range(1000):
            log.warning("%s", "y" * 100_000)
    written = capsys.readouterr().err

    assert 0 < written.count("\n") < 100
    assert len(written) < 1_000_000
