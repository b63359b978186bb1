"""Questions to webhooks, put over TLS, in threads of their own.

What goes wrong is told in the words of Go's net/http and of client-go, since clients of the real server see those.
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

#: Longer replies are not read; the largest object is half of it.
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
#: Refusals that are told in the words of whoever refuses.
_STATUSES_WITH_SERVER_TEXT = (403, 415)


def call_webhook(question: WebhookRequest) -> WebhookResponse:
    """Put a question, and wait for the reply as long as its time goes."""
    if question.unreachable_reason:
        return _failed_response(question, question.unreachable_reason)
    try:
        return _post(question)
    except ConnectionRefusedError:
        problem = f"dial tcp {question.host}:{question.port}: connect: connection refused"
    except socket.gaierror:
        problem = f"dial tcp: lookup {question.host}: no such host"
    except TimeoutError:
        problem = "context deadline exceeded"
    except ssl.SSLCertVerificationError as error:
        is_other = error.verify_code in (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
        what = error.verify_message if is_other else "certificate signed by unknown authority"
        problem = f"tls: failed to verify certificate: x509: {what}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        problem = str(error) or "EOF"
    return _failed_response(question, problem)


def _failed_response(question: WebhookRequest, problem: str) -> WebhookResponse:
    return WebhookResponse(0, b"", f'Post "{question.url}": {problem}')


def _post(question: WebhookRequest) -> WebhookResponse:
    parts = urlsplit(question.url)
    with socket.create_connection((question.host, question.port), timeout=question.timeout_s) as plain:
        # A timeout of a socket is one of each operation; what drips in, byte by byte, is ended all the same.
        watchdog = _Watchdog(plain, question.timeout_s)
        try:
            with _tls_context(question.ca_bundle).wrap_socket(plain, server_hostname=question.server_name) as secured:
                watchdog.socket = secured
                connection = http.client.HTTPConnection(parts.netloc)
                connection.sock = secured
                target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
                headers = {"Content-Type": "application/json", "Accept": "application/json, */*"}
                connection.request("POST", target, question.body, headers)
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
    """Ends a connection whose time is over."""

    daemon = True

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        super().__init__(seconds, self._expire)
        self.socket = connection
        self.has_expired = False
        self.start()

    def _expire(self) -> None:
        self.has_expired = True
        with contextlib.suppress(OSError):
            # Not the way of TLS, which would wait for the other end.
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


def _tls_context(authorities: str) -> ssl.SSLContext:
    """Return how a server's certificate is judged: as Go does, which takes any certificate of the bundle as a root."""
    context = ssl.create_default_context(cadata=authorities or None)
    context.verify_flags = (context.verify_flags | ssl.VERIFY_X509_PARTIAL_CHAIN) & ~ssl.VERIFY_X509_STRICT
    return context


def _error_message(status: int, body: bytes, content_type: str) -> str:
    """Return what client-go makes of an answer that is none (errors.NewGenericServerResponse)."""
    told = _status_message(body)
    if told:
        return told
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
    """Return the message of a Status in a body, which says more than the status of HTTP; "" if there is none."""
    try:
        status = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    if isinstance(status, dict) and (status.get("apiVersion"), status.get("kind")) == ("v1", "Status"):
        message = status.get("message")
        return message if isinstance(message, str) and status.get("status") != "Success" else ""
    return ""


def run_in_threads(loop: AbstractEventLoop, works: Sequence[Callable[[], None]], then: Callable[[], None]) -> None:
    """Do all of `works` at the same time, each in a thread, and call `then` within the event loop when all are done."""
    left = len(works)

    def done() -> None:
        nonlocal left
        left -= 1
        if not left:
            then()

    def do(work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(done)

    for work in works:
        # It does not outlive the process: nobody waits for it at the end.
        threading.Thread(target=do, args=(work,), daemon=True).start()
