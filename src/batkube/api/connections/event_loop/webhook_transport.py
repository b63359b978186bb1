"""Call webhooks over TLS in worker threads.

Errors are worded as by Go's net/http and client-go, since kube-apiserver passes those messages on to its clients.
"""

from __future__ import annotations

import _thread
import contextlib
import functools
import http.client
import io
import socket
import ssl
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import msgspec

from batkube.api.requests.webhooks.calls import WebhookRequest, WebhookResponse
from batkube.kernel.stopwatch import Stopwatch
from batkube.text.go_format import go_quote

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: How many calls are under way at a time. Each belongs to a write, and kube-apiserver handles as many writes at a time
#: (Kubernetes: apiserver/pkg/server/config.go, MaxMutatingRequestsInFlight).
_MAX_CALLS = 200
#: How many TLS contexts are cached, by certificate authorities; loading them takes longer than a call.
_MAX_CONTEXTS = 64
_TIMED_OUT = "context deadline exceeded"
#: How much of a response is read; the largest object is half as long.
_MAX_RESPONSE_BYTES = 6 * 1024 * 1024
_STATUS_MESSAGES = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
#: Status codes for which the message is the server's text.
_STATUSES_WITH_SERVER_TEXT = (403, 415)


def call_webhook(request: WebhookRequest) -> WebhookResponse:
    """Send a webhook request and wait for the response, until the timeout."""
    if request.unreachable_reason:
        return _failed_response(request, request.unreachable_reason)
    if request.timeout_s <= 0:
        return _failed_response(request, _TIMED_OUT)
    try:
        return _post(request)
    except ConnectionRefusedError:
        problem = f"dial tcp {request.host}:{request.port}: connect: connection refused"
    except socket.gaierror:
        problem = f"dial tcp: lookup {request.host}: no such host"
    except TimeoutError:
        problem = _TIMED_OUT
    except ssl.SSLCertVerificationError as error:
        is_name_mismatch = error.verify_code in (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
        reason = error.verify_message if is_name_mismatch else "certificate signed by unknown authority"
        problem = f"tls: failed to verify certificate: x509: {reason}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        problem = str(error) or "EOF"
    return _failed_response(request, problem)


def _failed_response(request: WebhookRequest, problem: str) -> WebhookResponse:
    return WebhookResponse(0, b"", f'Post "{request.url}": {problem}')


def _post(request: WebhookRequest) -> WebhookResponse:
    parts, deadline = urlsplit(request.url), _Deadline(request.timeout_s)
    with socket.create_connection((request.host, request.port), timeout=request.timeout_s) as plain:
        plain.settimeout(deadline.remaining_s)
        with _tls_context(request.ca_bundle).wrap_socket(plain, server_hostname=request.server_name) as secured:
            connection = http.client.HTTPConnection(parts.netloc)
            connection.sock = cast(socket.socket, _DeadlineSocket(secured, deadline))
            target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
            headers = {"Content-Type": "application/json", "Accept": "application/json, */*"}
            connection.request("POST", target, request.body, headers)
            response = connection.getresponse()
            body = response.read(_MAX_RESPONSE_BYTES)
    if response.status // 100 != 2:
        return WebhookResponse(
            response.status, body, _error_message(response.status, body, response.getheader("Content-Type") or "")
        )
    return WebhookResponse(response.status, body, "", response.getheader("Content-Type") or "application/json")


class _Deadline:
    """The deadline of a webhook call."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._age = Stopwatch()

    @property
    def remaining_s(self) -> float:
        """The remaining seconds; raises TimeoutError if there are none."""
        remaining_s = self._timeout_s - self._age.real_s
        if remaining_s <= 0:
            raise TimeoutError
        return remaining_s


class _DeadlineSocket(io.RawIOBase):
    """A socket whose operations share one deadline; a socket's own timeout applies to each of them."""

    def __init__(self, connection: socket.socket, deadline: _Deadline) -> None:
        self._socket = connection
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        """Send all data."""
        left = memoryview(data)
        while left:
            self._socket.settimeout(self._deadline.remaining_s)
            left = left[self._socket.send(left) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a reader that works even after this object is closed, like that of a socket."""
        return io.BufferedReader(_DeadlineSocket(self._socket, self._deadline))

    def readable(self) -> bool:
        """Return True: it is the raw stream of `makefile`."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Receive data into a buffer."""
        self._socket.settimeout(self._deadline.remaining_s)
        return self._socket.recv_into(buffer)


@functools.lru_cache(maxsize=_MAX_CONTEXTS)
def _tls_context(authorities: str) -> ssl.SSLContext:
    """Return a context that verifies servers as Go does, which trusts any certificate of the bundle as a root."""
    context = ssl.create_default_context(cadata=authorities or None)
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    return context


def _error_message(status: int, body: bytes, content_type: str) -> str:
    """Return client-go's message for an error response."""
    # Kubernetes: apimachinery/pkg/api/errors/errors.go, NewGenericServerResponse.
    message = _status_message(body)
    if message:
        return message
    is_text = not content_type or content_type.startswith("text/")
    text = body[:2048].decode(errors="replace").strip() if is_text else "unknown"
    if status in _STATUSES_WITH_SERVER_TEXT:
        return text
    if status in _STATUS_MESSAGES:
        return _STATUS_MESSAGES[status]
    if status >= 500:
        return f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _status_message(body: bytes) -> str:
    """Return the message of a Status in the body, "" if the body is not a failure Status."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    if isinstance(status, dict) and (status.get("apiVersion"), status.get("kind")) == ("v1", "Status"):
        message = status.get("message")
        return message if isinstance(message, str) and status.get("status") != "Success" else ""
    return ""


class WebhookThreads:
    """Runs the webhook calls of a server in at most `_MAX_CALLS` threads; further calls are queued.

    The timeout of a call includes its time in the queue (`WebhookCalls`), so calls of a dead webhook fail in time.
    """

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._running = 0
        #: The calls that wait, each with a function to call in the event loop when it has finished.
        self._queue: deque[tuple[Callable[[], None], Callable[[], None]]] = deque()

    def run(self, calls: Sequence[Callable[[], None]], then: Callable[[], None]) -> None:
        """Run all `calls` concurrently, and call `then` in the event loop when all have finished."""
        remaining = len(calls)

        def on_finished() -> None:
            nonlocal remaining
            remaining -= 1
            if not remaining:
                then()

        if not calls:
            self._loop.call_soon(then)
        self._queue += [(call, on_finished) for call in calls]
        self._start_queued()

    def _start_queued(self) -> None:
        while self._queue and self._running < _MAX_CALLS:
            self._running += 1
            # Unlike Thread.start, this does not wait until the thread runs; no request could be handled meanwhile. Like
            # a daemon thread, it does not delay the exit of the process.
            _thread.start_new_thread(self._run, self._queue.popleft())

    def _run(self, call: Callable[[], None], on_finished: Callable[[], None]) -> None:
        try:
            call()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                self._loop.call_soon_threadsafe(self._on_finished, on_finished)

    def _on_finished(self, on_finished: Callable[[], None]) -> None:
        self._running -= 1
        self._start_queued()
        on_finished()
