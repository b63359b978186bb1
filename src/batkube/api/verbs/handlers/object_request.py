"""Requests about objects, after routing and content negotiation."""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.requests.messages import Request, Response, Stream
from batkube.api.requests.negotiation import ResponseForm
from batkube.api.requests.routing import Route
from batkube.api.requests.users import User
from batkube.api.requests.warnings import warning_headers
from batkube.cluster.kinds import Resource
from batkube.kernel.instants import Instant


class ObjectRequest:
    """One request about objects, with its route, resource, user and response form."""

    __slots__ = ("form", "now", "request", "resource", "route", "user", "warnings")

    def __init__(
        self, request: Request, route: Route, resource: Resource, user: User, now: Instant, form: ResponseForm
    ) -> None:
        self.request = request
        self.route = route
        self.resource = resource
        self.user = user
        self.now = now
        self.form = form
        self.warnings: list[str] = []

    def warning_headers(self) -> tuple[tuple[str, str], ...]:
        """Return the Warning headers of the response."""
        return warning_headers(self.warnings) if self.warnings else ()


SpecialHandler = Callable[[ObjectRequest], Response | Stream]
"""Handles requests about a resource that is not stored."""
