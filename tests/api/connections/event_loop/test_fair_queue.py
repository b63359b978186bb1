"""The queue of connections with requests: clients are served fairly."""

from __future__ import annotations

import asyncio
import contextlib
import functools

from batkube.api.connections.event_loop.fair_queue import FairQueue


class Flooding:
    """A connection with an endless series of requests of a given length."""

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
    """An event loop whose time advances only while requests are handled."""

    def __init__(self, request_s: float = 0.004) -> None:
        super().__init__()
        self.now, self.request_s = 1.0, request_s
        self.served: list[str] = []

    def time(self) -> float:
        return self.now

    def come_round(self) -> None:
        self.call_soon(self.stop)
        self.run_forever()


def test_a_first_request_overtakes_those_of_busy_clients() -> None:
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


def test_idle_clients_are_forgotten_regardless_of_their_number() -> None:
    loop = SteppedLoop()
    with contextlib.closing(loop):
        queue = FairQueue(loop)
        for number in range(5000):
            queue.submit(Flooding(loop, "", left=1, client=f"client-{number}"))
            loop.come_round()

    assert len(queue._clients) < 1100


def test_sockets_are_polled_more_often_while_clients_connect() -> None:
    served = []
    for has_newcomers in (True, False):
        loop = SteppedLoop(request_s=0.0009)
        with contextlib.closing(loop):
            queue = FairQueue(loop, functools.partial(bool, has_newcomers))
            queue.submit(Flooding(loop, "flood"))
            loop.come_round()
            loop.served.clear()
            loop.come_round()
            served.append(len(loop.served))

    assert served == [2, 5]


def test_busy_clients_get_equal_shares() -> None:
    loop = SteppedLoop()
    with contextlib.closing(loop):
        queue = FairQueue(loop)
        for number in range(7):
            queue.submit(Flooding(loop, str(number)))
        while len(loop.served) < 700:
            loop.come_round()

    shares = [loop.served.count(str(number)) for number in range(7)]
    # The first request did not compete with others, and is not counted.
    assert max(shares) - min(shares) <= 2
