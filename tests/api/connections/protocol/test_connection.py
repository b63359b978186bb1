"""A connection, without a socket."""

from __future__ import annotations

from tests.api.connections.echo import Echo

from batkube.api.connections.protocol.connection import Connection


class SlowWire:
    """A client that reads only when the test requests it."""

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
