"""Calls of webhooks: at most so many at a time, and none longer than its timeout."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from batkube.api.access.serving_certificates import new_server_credentials
from batkube.api.connections.event_loop.webhook_transport import WebhookThreads, call_webhook
from batkube.api.requests.webhooks.calls import WebhookRequest
from batkube.kernel.stopwatch import Stopwatch, wall_clock_instant


def test_at_most_200_calls_run_and_the_others_are_queued() -> None:
    may_end, lock = threading.Event(), threading.Lock()
    under_way = finished = most = 0

    def call() -> None:
        nonlocal under_way, finished, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        may_end.wait(20)
        with lock:
            under_way -= 1
            finished += 1

    async def run() -> int:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        threads, before = WebhookThreads(loop), _thread._count()
        for _ in range(100):
            threads.run([call] * 4, lambda: None)
        threads.run([call], done.set)
        while under_way < 200:
            await asyncio.sleep(0.01)
        count = _thread._count() - before
        may_end.set()
        await done.wait()
        while finished < 401:
            await asyncio.sleep(0.01)
        return count

    assert asyncio.run(run()) <= 200
    assert (most, finished) == (200, 401)


def test_a_call_is_started_without_waiting_for_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine it takes a while until a new thread runs; 20 calls of a rollout delayed requests by 0.5 s."""
    waiting: list[Callable[[], None]] = []
    monkeypatch.setattr(
        _thread, "start_new_thread", lambda function, arguments: waiting.append(lambda: function(*arguments))
    )

    async def run() -> int:
        finished = asyncio.Event()
        WebhookThreads(asyncio.get_running_loop()).run([lambda: None] * 3, finished.set)
        started = len(waiting)
        for start in waiting:
            start()
        await asyncio.wait_for(finished.wait(), 20)
        return started

    assert asyncio.run(run()) == 3


def test_without_calls_the_callback_comes_from_the_event_loop() -> None:
    async def run() -> bool:
        done = asyncio.Event()
        WebhookThreads(asyncio.get_running_loop()).run([], done.set)
        was_set = done.is_set()
        await done.wait()
        return was_set

    assert not asyncio.run(run())


@contextlib.contextmanager
def dripping() -> Iterator[tuple[int, str]]:
    """A webhook that sends one byte of its response every tenth of a second."""
    credentials = new_server_credentials("127.0.0.1", wall_clock_instant())
    may_end = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            plain, _ = listening.accept()
            with contextlib.suppress(OSError), credentials.tls_context.wrap_socket(plain, server_side=True) as secured:
                secured.recv(4096)
                while not may_end.wait(0.1):
                    secured.send(b"H")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1], credentials.ca_certificate.decode()
        may_end.set()
        thread.join(5)


def test_a_response_that_drips_ends_at_the_timeout() -> None:
    with dripping() as (port, authority):
        request = WebhookRequest(
            f"https://127.0.0.1:{port}/x", "127.0.0.1", port, "127.0.0.1", authority, b"{}", timeout_s=0.5
        )
        watch, threads = Stopwatch(), threading.active_count()
        response = call_webhook(request)

        assert threading.active_count() == threads
    assert response.error == f'Post "https://127.0.0.1:{port}/x": context deadline exceeded'
    assert 0.4 < watch.real_s < 10


def test_a_call_that_was_queued_for_too_long_is_not_made() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        request = WebhookRequest(f"https://127.0.0.1:{port}/x", "127.0.0.1", port, "x", "", b"{}", timeout_s=-0.1)

        response = call_webhook(request)

        listening.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            listening.accept()
            raise AssertionError("there was a connection")
    assert response.error.endswith("context deadline exceeded")
