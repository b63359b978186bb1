"""A handler that answers everything, for servers whose answers do not matter."""

from __future__ import annotations

from batkube.api.requests.messages import Request, Response


class AskedPaths:
    """Answers everything, and remembers the paths asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.body = b"ok"

    def handle(self, request: Request) -> Response:
        self.asked.append(request.path)
        return Response(200, self.body)

    def too_large(self) -> Response:
        return Response(413, b"")
