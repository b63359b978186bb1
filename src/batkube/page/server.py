"""An HTTP server for one page: on loopback only, behind a random token in its address.

Requests without the token get 404. The page may not load anything from elsewhere. The `Host` of a request must be the
loopback address, so that another site cannot reach the server through a host name of its own (DNS rebinding).
"""

from __future__ import annotations

import hmac
import secrets
import socket
import sys
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from batkube.kernel.errors import InputError

HOST = "127.0.0.1"
#: Seconds that a client may take for a request, or keep an idle connection.
_TIMEOUT_S = 30.0
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-PageResource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

PageResource = Callable[[Mapping[str, str]], tuple[str, bytes]]
"""Returns the content type and the content for the parameters of a query."""


class PageServer(ThreadingHTTPServer):
    """Serves resources by their path below the token; the page has the empty path."""

    daemon_threads = True

    def __init__(self, resources: Mapping[str, PageResource], port: int = 0) -> None:
        """Listen on a port; 0 for any free one. Raises InputError if the port is taken."""
        self.token = secrets.token_urlsafe(24)
        self.resources = resources
        try:
            super().__init__((HOST, port), _PageHandler)
        except OSError as error:
            problem = f"cannot listen on this address: {error.strerror or error}"
            remedy = "choose another --port, or omit it to use any free port"
            raise InputError(f"{HOST}:{port}", problem=problem, remedy=remedy) from error

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Ignore connections that clients break; other errors are printed as usual."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _PageHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "Batkube"
    sys_version = ""
    timeout = _TIMEOUT_S
    server: PageServer

    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(code)d %(message)s\n"

    def do_GET(self) -> None:
        """Send a resource to a client that knows the token."""
        resource, parameters = self._find()
        if resource is None:
            self.send_error(404)
            return
        content_type, content = resource(parameters)
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_HEAD(self) -> None:
        """Send the headers alone."""
        self.do_GET()

    def _find(self) -> tuple[PageResource | None, Mapping[str, str]]:
        """Return the requested resource, or None, and the parameters of the query."""
        parts = urlsplit(self.path)
        token, _, name = parts.path.removeprefix("/").partition("/")
        is_ours = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        if not is_ours or self.headers.get("Host") != f"{HOST}:{self.server.server_port}":
            return None, {}
        return self.server.resources.get(name), {key: values[0] for key, values in parse_qs(parts.query).items()}

    def end_headers(self) -> None:
        """Add the headers of every response."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing: requests contain the token."""
