"""Call webhooks in the middle of a request without blocking other requests.

Requests are handled one at a time, and a webhook may take half a minute to respond. A request that needs a webhook is
therefore aborted with `PendingWebhookCalls`, which is safe as long as it has written nothing. The webhooks are called
while other requests are served; then the request is handled again from the start and finds their responses. Random
values such as uids must be the same in both attempts, since the webhook has seen them: `WebhookCalls.once`.

Writes of in-process components are suspended in the same way if the component can retry (`interrupted_writes`), and are
queued if it cannot (`deferred_writes`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from batkube.kernel.stopwatch import Stopwatch

CallResults = dict[Hashable, Any]
"""Webhook responses and random values of one request, by key; kept between its attempts."""

_Value = TypeVar("_Value")


class WebhookRequest(NamedTuple):
    """A JSON body to POST to a webhook over TLS."""

    url: str
    #: The address to connect to: that of the URL, or of a service's endpoint; "" if it cannot be resolved.
    host: str
    port: int
    #: The name that the certificate must be valid for.
    server_name: str
    #: PEM; "" for the machine's certificate authorities.
    ca_bundle: str
    body: bytes
    timeout_s: float
    #: Why the webhook cannot be called, if that is known beforehand; else "".
    unreachable_reason: str = ""


class WebhookResponse(NamedTuple):
    """The HTTP response of a webhook, or the error."""

    #: The HTTP status; 0 if there was no response.
    status: int
    body: bytes
    #: Why there was no response, in the words of Go's net/http.
    error: str = ""
    content_type: str = "application/json"


CallWebhook = Callable[[WebhookRequest], WebhookResponse]
"""Sends a request and waits for the response. Called in worker threads."""


class PendingWebhookCalls(Exception):
    """The request needs webhooks: run `calls` in other threads, concurrently, then handle the request again."""

    def __init__(self, calls: Sequence[Callable[[], None]]) -> None:
        super().__init__("waiting for a webhook")
        self.calls = calls


class WebhookCalls:
    """The webhook calls of the current request and their responses."""

    def __init__(self, call_webhook: CallWebhook, version: Callable[[], int]) -> None:
        """`version` returns a number that every write increases."""
        self._call_webhook = call_webhook
        self._store_version = version
        #: The results of the current request; None if it cannot be aborted.
        self.results: CallResults | None = None
        #: The version when the request first reached a point where it may be aborted; None before that.
        self._restartable_since: int | None = None

    def begin_request(self, results: CallResults) -> None:
        """Start an attempt to handle a request that has these results so far."""
        self.results, self._restartable_since = results, None

    def end_request(self) -> None:
        """End the attempt."""
        self.results = None

    @contextlib.contextmanager
    def component_request(self, results: CallResults | None = None) -> Iterator[None]:
        """Handle a write of an in-process component, separately from the current request if there is one.

        If `results` is given, the write may be aborted and repeated.
        """
        before, self.results, self._restartable_since = (self.results, self._restartable_since), results, None
        try:
            yield
        finally:
            self.results, self._restartable_since = before

    @property
    def _must_block(self) -> bool:
        """Whether the current request cannot be aborted, and blocks the server: it has already written something."""
        return self.results is None or self._store_version() != self._restartable_since

    def mark_restartable(self) -> None:
        """Record that the current request may be aborted from here on, until its next write."""
        if self._restartable_since is None:
            self._restartable_since = self._store_version()

    def once(self, key: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return the value that `make` returned in the request's first attempt."""
        if self.results is None:
            return make()
        self.mark_restartable()
        if key not in self.results:
            self.results[key] = make()
        value: _Value = self.results[key]
        return value

    def responses(self, requests: Sequence[tuple[Hashable, WebhookRequest]]) -> list[WebhookResponse]:
        """Return the responses to requests, which may be sent concurrently; each has a unique key.

        Raises PendingWebhookCalls if some are missing and the current request can be aborted.
        """
        results = {} if self.results is None else self.results
        self.mark_restartable()
        missing = [(key, request) for key, request in requests if key not in results]
        if missing and self._must_block:
            results = {**results, **{key: self._call_webhook(request) for key, request in missing}}
        elif missing:
            raise PendingWebhookCalls([self._deferred_call(results, key, request) for key, request in missing])
        return [results[key] for key, _ in requests]

    def _deferred_call(self, results: CallResults, key: Hashable, request: WebhookRequest) -> Callable[[], None]:
        age = Stopwatch()

        def call() -> None:
            # Store a response even if the call raises; otherwise the request would retry forever.
            results[key] = WebhookResponse(0, b"", "the webhook could not be called")
            # The call may have been queued, which counts as waiting for the webhook.
            results[key] = self._call_webhook(request._replace(timeout_s=request.timeout_s - age.real_s))

        return call
