"""A webhook server with its own certificate, in a thread of the test's process."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from batkube.api.access.serving_certificates import new_server_credentials
from batkube.kernel.stopwatch import wall_clock_instant

Json = dict[str, Any]
Answer = Callable[[Json], Json]


class Hook:
    """A webhook server: the reviews it has received, and its answers."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.reviews: list[Json] = []
        self.paths: list[str] = []
        self.status = 200
        credentials = new_server_credentials("127.0.0.1", wall_clock_instant())
        self.authority = base64.b64encode(credentials.ca_certificate).decode()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.paths.append(self.path)
                outer.reviews.append(review)
                status, body = outer.respond(self.path, review)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Ignore errors of clients that have disconnected, as they do in some tests."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.socket = credentials.tls_context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]

    def respond(self, path: str, review: Json) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a review."""
        return self.status, json.dumps(self.answer(review)).encode()

    @contextlib.contextmanager
    def listening(self) -> Iterator[Hook]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


class ScriptedHook(Hook):
    """The webhook server of a case, which defines its behaviour (docs/reference/conformance.md)."""

    def __init__(self, script: Json) -> None:
        super().__init__(lambda review: review)
        self._script = script

    def respond(self, path: str, review: Json) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a review."""
        script: Json = self._script[path.partition("?")[0]]
        time.sleep(script.get("sleep", 0))
        status = script.get("status", 200)
        if "text" in script:
            return status, script["text"].encode()
        response = {**_consent(review), **script.get("response", {})}
        if "patch" in script:
            encoded = base64.b64encode(json.dumps(script["patch"]).encode()).decode()
            response = {"patch": encoded, "patchType": "JSONPatch", **response}
        answer = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        return status, json.dumps({**answer, **script.get("answer", {})}).encode()

    def asked_at(self, path: str) -> list[Json]:
        """Return the reviews that were sent to a path."""
        return [review for at, review in zip(self.paths, self.reviews, strict=True) if at.partition("?")[0] == path]


def _consent(review: Json) -> Json:
    """Return a response that allows the request, or converts objects by name."""
    request = review["request"]
    if "objects" not in request:
        return {"uid": request["uid"], "allowed": True}
    converted = [{**each, "apiVersion": request["desiredAPIVersion"]} for each in request["objects"]]
    return {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}
