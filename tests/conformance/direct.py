"""The API without sockets or real time: requests are passed directly to `Api.handle`.

It is for tests that send thousands of requests, or that control the clock.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from batkube.api.assembly import Api
from batkube.api.requests.messages import Request, Response
from batkube.api.requests.webhooks.calls import CallWebhook
from batkube.cluster.kinds import DEFAULT_KUBERNETES, ServedApi
from batkube.cluster.store import Store
from batkube.kernel.instants import Instant, instant_of
from batkube.kernel.streams import Streams
from conformance.placeholders import Json
from conformance.serving import USERS

ADMIN = {"authorization": "Bearer admin-token", "accept": "application/json", "user-agent": "tests/1"}
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class Answer(NamedTuple):
    """An answer with its decoded body."""

    status: int
    body: Json


class ManualTimers:
    """Timers that fire when the test advances the time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._cancelled: set[int] = set()

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Call `callback` after `seconds`."""
        number = next(self._numbers)
        heapq.heappush(self._due, (self.now_s + seconds, number, callback))
        return lambda: self._cancelled.add(number)

    def pass_time(self, seconds: float) -> None:
        """Advance the time by `seconds`, and call the callbacks that are due."""
        end = self.now_s + seconds
        while self._due and self._due[0][0] <= end:
            self.now_s, number, callback = heapq.heappop(self._due)
            if number not in self._cancelled:
                callback()
        self.now_s = end


class Reader:
    """The client side of a watch: it accepts events while it is `writable`, which a test can change."""

    def __init__(self) -> None:
        self.writable = True
        self.is_closed = False
        self.events: list[Json] = []

    def write(self, data: bytes) -> None:
        """Accept a part of the stream: one event or more."""
        self.events.extend(msgspec.json.decode(line) for line in data.splitlines())

    def close(self) -> None:
        """The server ends the stream."""
        self.is_closed = True


class Watched(NamedTuple):
    """An open watch."""

    reader: Reader
    resume: Callable[[], None]
    stop: Callable[[], None]


class Direct:
    """A server and its clock, controlled by a test."""

    def __init__(
        self,
        history_limit: int = 10_000,
        more_versions: Sequence[str] = (),
        call_webhook: CallWebhook | None = None,
        kubernetes: str = DEFAULT_KUBERNETES,
    ) -> None:
        self.timers = ManualTimers()
        self.store = Store(history_limit)
        start = instant_of("2026-11-15T20:00:00Z")
        self.api = Api(
            self.store,
            lambda: Instant(start + int(self.timers.now_s * 1e9)),
            self.timers,
            Streams(1),
            USERS,
            bare=True,
            kinds=ServedApi(kubernetes, more_versions),
            call_webhook=call_webhook,
        )
        self.api.bootstrap(start, 6443)

    def ask(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
        token: str = "admin-token",
    ) -> Answer:
        """Return the answer to a request of the administrator, or of the owner of `token`."""
        request = self._request(method, path, body, content_type, query or {})
        request.headers = {**request.headers, "authorization": f"Bearer {token}"}
        response = self.api.handle(request)
        assert isinstance(response, Response)
        is_json = response.content_type.startswith("application/json")
        return Answer(response.status, msgspec.json.decode(response.body) if is_json else response.body.decode())

    def watch(self, path: str, query: Mapping[str, str] | None = None) -> Watched | Answer:
        """Open a watch; return it, or the answer of a server that refuses it."""
        stream = self.api.handle(self._request("GET", path, None, "", {"watch": "true", **(query or {})}))
        if isinstance(stream, Response):
            return Answer(stream.status, msgspec.json.decode(stream.body))
        reader = Reader()
        stream.start(reader)
        return Watched(reader, stream.resume, stream.stop)

    @staticmethod
    def _request(method: str, path: str, body: Json, content_type: str, query: Mapping[str, str]) -> Request:
        headers = {**ADMIN, "content-type": content_type} if body is not None else ADMIN
        data = b"" if body is None else msgspec.json.encode(body)
        return Request(method, path, {name: [value] for name, value in query.items()}, headers, data)
