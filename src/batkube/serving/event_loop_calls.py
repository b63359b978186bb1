"""Calls from other threads into the event loop of a served cluster, which alone may read and change its world."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from batkube.kernel.instants import Instant
from batkube.timing.live import LiveTime

_Result = TypeVar("_Result")
#: How long a call may take, in seconds: the event loop may be busy.
_TIMEOUT_S = 30.0


class EventLoopCalls:
    """Calls functions in the event loop, at the current instant."""

    def __init__(self, loop: asyncio.AbstractEventLoop, time: LiveTime) -> None:
        self._loop = loop
        self._time = time

    def call(self, function: Callable[[Instant], _Result]) -> _Result:
        """Execute what is due, call `function` with the current instant, and return its result.

        Raises TimeoutError if the event loop does not respond, and RuntimeError once it is closed. An error of
        `function` is raised in both threads: there it is reported as a bug.
        """
        future: Future[_Result] = Future()

        def run() -> None:
            try:
                future.set_result(function(self._time.now()))
            except BaseException as error:
                future.set_exception(error)
                raise

        self._loop.call_soon_threadsafe(run)
        return future.result(_TIMEOUT_S)
