"""The HTTP client of a replay: one persistent connection for requests, and a separate one for each watch.

It does not use a client library, which would add headers, retry requests, or follow redirects that a case examines.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping
from typing import Any

from conformance.placeholders import Json

_DEFAULT_HEADERS = {"User-Agent": "conformance/1.0", "Accept": "application/json"}
_PATH_CHARACTERS = "/:@!$&'()*+,;=~%"
_REQUEST_SECONDS = 60.0
_WATCH_SECONDS = 120.0


def is_plain_bookmark(event: Json) -> bool:
    """Return whether `event` is a periodic bookmark, not the one after the initial events."""
    if not isinstance(event, dict) or event.get("type") != "BOOKMARK":
        return False
    return "k8s.io/initial-events-end" not in json.dumps(event)


class Client:
    """Sends the requests of cases to one server."""

    def __init__(self, url: str, token: str = "admin-token", user_token: str = "user-token") -> None:
        parts = urllib.parse.urlsplit(url)
        self._host, self._prefix = parts.hostname or "", parts.path.rstrip("/")
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context()
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
        self._tokens = {"admin": token, "user": user_token, "invalid": "not-a-token"}
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: Json = None, **query: str) -> dict[str, Any]:
        """Send a request that belongs to no case; a patch is a merge patch."""
        request: dict[str, Any] = {"method": method, "path": path, "body": body}
        request["query"] = {name: [text] for name, text in query.items()}
        if method == "PATCH":
            request["headers"] = {"Content-Type": "application/merge-patch+json"}
        return dict(self.request(request))

    def request(self, request: Mapping[str, Json]) -> dict[str, Json]:
        """Return the answer to one request; reconnect if the server has closed the connection."""
        path, headers, body = self._prepared(request)
        problem = ""
        for _ in range(3):
            try:
                if self._connection is None:
                    self._connection = self._connect(_REQUEST_SECONDS)
                self._connection.request(request["method"], path, body, headers)
                response = self._connection.getresponse()
                answer = _answer(response, response.read())
            except (http.client.HTTPException, OSError) as error:
                self.close()
                problem = type(error).__name__
                continue
            if response.will_close:
                self.close()
            return answer
        return {"status": 0, "content_type": "", "body": f"transport error: {problem}"}

    def close(self) -> None:
        """Close the persistent connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def watch(self, request: Mapping[str, Json]) -> Watching:
        """Open a watch; its events are collected in the background."""
        query = {"watch": "true", **(request.get("query") or {})}
        path, headers, body = self._prepared({**request, "method": "GET", "query": query})
        return Watching(self._connect(_WATCH_SECONDS), path, headers, body)

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._tls is not None:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _prepared(self, request: Mapping[str, Json]) -> tuple[str, dict[str, str], bytes | None]:
        path = self._prefix + urllib.parse.quote(request["path"], safe=_PATH_CHARACTERS)
        if request.get("query"):
            path += "?" + urllib.parse.urlencode(request["query"], doseq=True)
        headers: dict[str, str | None] = dict(_DEFAULT_HEADERS)
        body = request.get("body")
        data = None
        if body is not None:
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            headers["Content-Type"] = "application/json"
        headers.update(request.get("headers") or {})
        token = self._tokens.get(request.get("auth", "admin"))
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return path, {name: value for name, value in headers.items() if value is not None}, data


def _answer(response: http.client.HTTPResponse, raw: bytes | None) -> dict[str, Json]:
    """Return the parts of a response that a case records; without a body if `raw` is None."""
    answer: dict[str, Any] = {"status": response.status, "content_type": response.getheader("Content-Type") or ""}
    warnings = response.headers.get_all("Warning")
    if warnings:
        answer["warnings"] = warnings
    for name, header in (("retry_after", "Retry-After"), ("location", "Location")):
        value = response.getheader(header)
        if value:
            answer[name] = value
    if raw is not None:
        text = raw.decode("utf-8", "replace")
        answer["body"] = text
        if "json" in answer["content_type"]:
            with contextlib.suppress(ValueError):
                answer["body"] = json.loads(text)
    return answer


class Watching:
    """An open watch; a separate thread reads its events as they arrive."""

    def __init__(
        self, connection: http.client.HTTPConnection, path: str, headers: dict[str, str], body: bytes | None
    ) -> None:
        self.answer: dict[str, Json] = {"status": 0, "content_type": "", "body": "no answer"}
        self.events: list[Json] = []
        self.is_closed = False
        self._connection = connection
        self._changed = threading.Condition()
        self._latest = time.monotonic()
        self._started = threading.Event()
        connection.request("GET", path, body, headers)
        threading.Thread(target=self._read, daemon=True).start()

    def await_start(self, seconds: float) -> None:
        """Wait for the headers of the answer."""
        self._started.wait(seconds)

    def await_events(self, count: int, quiet_s: float, limit_s: float) -> None:
        """Wait for `count` events, then until none arrives for `quiet_s`.

        Or for the end of the stream, or `limit_s`.
        """
        end = time.monotonic() + limit_s
        with self._changed:
            self._latest = max(self._latest, time.monotonic())
            while not self.is_closed:
                left = end - time.monotonic()
                if self._count() >= count:
                    left = min(left, self._latest + quiet_s - time.monotonic())
                if left <= 0:
                    return
                self._changed.wait(left)

    def await_end(self, limit_s: float) -> None:
        """Wait until the server ends the watch."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed, limit_s)

    def stop(self) -> None:
        """Close the connection."""
        sock = self._connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _count(self) -> int:
        return sum(not is_plain_bookmark(event) for event in self.events)

    def _read(self) -> None:
        try:
            response = self._connection.getresponse()
            self.answer = _answer(response, None if response.status == 200 else response.read())
            self._started.set()
            if response.status == 200:
                for line in iter(response.readline, b""):
                    self._take(line)
        except (http.client.HTTPException, OSError, ValueError) as error:
            if not self._started.is_set():
                self.answer["body"] = f"transport error: {type(error).__name__}"
        self._started.set()
        self._connection.close()
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            event = json.loads(line)
        except ValueError:
            event = line.decode("utf-8", "replace")
        with self._changed:
            self.events.append(event)
            self._latest = time.monotonic()
            self._changed.notify_all()
