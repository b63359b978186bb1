"""The limit on watches and other streams of one user."""

from __future__ import annotations

import socket

import pytest

from batkube.api.connections.protocol.stream_limits import StreamLimits
from batkube.api.requests.statuses import Failure
from conformance.serving import Serving, serving
from hostile.attacked import request, wait_until

PODS = "/api/v1/namespaces/default/pods"


def test_a_user_with_too_many_streams_gets_a_429() -> None:
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
    """A stream that can only be closed."""

    on_stopped = None
