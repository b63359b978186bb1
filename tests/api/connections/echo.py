"""A handler of requests that returns their paths."""

from __future__ import annotations

from batkube.api.requests.messages import Request, Response


class Echo:
    """Responds to every request with a body of the size in its query, and records the paths."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def handle(self, request: Request) -> Response:
        self.asked.append(request.path)
        return Response(200, b"x" * int(request.query_value("size", "0")))

    def too_large(self) -> Response:
        return Response(413, b"")
