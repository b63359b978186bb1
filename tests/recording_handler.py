"""A request handler for tests in which the responses do not matter."""

from __future__ import annotations

from batkube.api.requests.messages import Request, Response


class RecordingHandler:
    """Responds with 200 to every request, and records the requested paths."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.body = b"ok"

    def handle(self, request: Request) -> Response:
        self.requested.append(request.path)
        return Response(200, self.body)

    def too_large(self) -> Response:
        return Response(413, b"")
