"""The limit on buffered bytes of all connections."""

from __future__ import annotations

from batkube.api.connections.event_loop.buffer_limit import BufferLimit


class Keeper:
    """A connection with buffered data."""

    def __init__(self, held_bytes: int) -> None:
        self.buffered_bytes = held_bytes
        self.is_aborted = False

    def abort(self) -> None:
        self.is_aborted = True


def test_beyond_the_total_limit_the_slowest_connection_is_aborted() -> None:
    buffers = BufferLimit(limit=100)
    first, second, third = Keeper(40), Keeper(40), Keeper(40)
    for keeper in (first, second, first, third):
        buffers.update(keeper)

    assert [keeper.is_aborted for keeper in (first, second, third)] == [False, True, False]
    assert buffers.total_bytes == 80


def test_a_single_response_may_exceed_the_total_limit() -> None:
    buffers = BufferLimit(limit=100)
    large = Keeper(1000)
    buffers.update(large)

    assert not large.is_aborted
