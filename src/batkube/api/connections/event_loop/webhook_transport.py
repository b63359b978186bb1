"""Call webhooks over TLS in worker threads.

Errors are worded as by Go's net/http and client-go, since kube-apiserver passes those messages on to its clients.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import msgspec

from batkube.api.requests.webhooks.calls import WebhookRequest, WebhookResponse
from batkube.kernel.text.go_format import go_quote

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
    try:
        return _post(request)
    except ConnectionRefusedError:
        problem = f"dial tcp {request.host}:{request.port}: connect: connection refused"
    except socket.gaierror:
        problem = f"dial tcp: lookup {request.host}: no such host"
    except TimeoutError:
        problem = "context deadline exceeded"
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
    parts = urlsplit(request.url)
    with socket.create_connection((request.host, request.port), timeout=request.timeout_s) as plain:
        # The socket's timeout applies to each operation; the watchdog limits the whole call.
        watchdog = _Watchdog(plain, request.timeout_s)
        try:
            with _tls_context(request.ca_bundle).wrap_socket(plain, server_hostname=request.server_name) as secured:
                watchdog.socket = secured
                connection = http.client.HTTPConnection(parts.netloc)
                connection.sock = secured
                target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
                headers = {"Content-Type": "application/json", "Accept": "application/json, */*"}
                connection.request("POST", target, request.body, headers)
                response = connection.getresponse()
                body = response.read(_MAX_RESPONSE_BYTES)
        except (OSError, ValueError, http.client.HTTPException):
            if watchdog.has_expired:
                raise TimeoutError from None
            raise
        finally:
            watchdog.cancel()
    if watchdog.has_expired:
        raise TimeoutError
    if response.status // 100 != 2:
        return WebhookResponse(
            response.status, body, _error_message(response.status, body, response.getheader("Content-Type") or "")
        )
    return WebhookResponse(response.status, body, "", response.getheader("Content-Type") or "application/json")


class _Watchdog(threading.Timer):
    """Shuts a connection down when the call times out."""

    daemon = True

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        super().__init__(seconds, self._expire)
        self.socket = connection
        self.has_expired = False
        self.start()

    def _expire(self) -> None:
        self.has_expired = True
        with contextlib.suppress(OSError):
            # Bypass the TLS shutdown, which would wait for the peer.
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


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


def run_in_threads(loop: AbstractEventLoop, calls: Sequence[Callable[[], None]], then: Callable[[], None]) -> None:
    """Run all `calls` concurrently, each in a thread, and call `then` in the event loop when all have finished."""
    remaining = len(calls)

    def on_finished() -> None:
        nonlocal remaining
        remaining -= 1
        if not remaining:
            then()

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(on_finished)

    for call in calls:
        # A daemon thread does not delay the exit of the process.
        threading.Thread(target=run, args=(call,), daemon=True).start()
