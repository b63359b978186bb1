"""Parse a request's path and method into verb, resource and object.

Follows apiserver/pkg/endpoints/request/requestinfo.go (NewRequestInfo), so that authorization sees the same attributes
as in kube-apiserver even for paths that do not exist.
"""

from __future__ import annotations

import msgspec

from batkube.api.requests.messages import Request
from batkube.cluster.store import Key

_VERB_OF_METHOD = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

#: Subresources of a namespace, as opposed to resources in it.
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


class Route(msgspec.Struct):
    """The parsed path and verb of one request."""

    path: str
    verb: str
    #: Whether the path lies below /api/v1 or /apis/GROUP/VERSION.
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    #: Path segments after the subresource.
    extra_segments: tuple[str, ...] = ()
    #: Whether the path has `namespaces/NAME/` before the resource.
    namespaced: bool = False
    #: Whether this is a list or watch, whose field selector may restrict it to one name.
    uses_field_selector: bool = False

    @property
    def key(self) -> Key:
        """The key of the object in the store."""
        return Key(f"{self.namespace}/{self.name}" if self.namespace else self.name)


def _path_segments(path: str) -> list[str]:
    trimmed = path.strip("/")
    return trimmed.split("/") if trimmed else []


def parse_route(request: Request) -> Route:
    """Return the route of a request; the query parameter `watch` is part of it."""
    path, method = request.path, request.method
    verb = _VERB_OF_METHOD.get(method, "")
    parts = _path_segments(path)
    if not parts or parts[0] not in ("api", "apis") or len(parts) < (3 if parts[0] == "api" else 4):
        return Route(path, method.lower())
    if parts[0] == "api":
        route = Route(path, verb, True, "", parts[1])
        parts = parts[2:]
    else:
        route = Route(path, verb, True, parts[1], parts[2])
        parts = parts[3:]
    if parts[0] in ("watch", "proxy") and len(parts) > 1:
        route.verb = parts[0]
        parts = parts[1:]
    if parts[0] == "namespaces" and len(parts) > 1:
        route.namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            route.namespaced = True
            parts = parts[2:]
    route.resource = parts[0]
    if len(parts) > 1:
        route.name = parts[1]
    if len(parts) > 2:
        route.subresource = parts[2]
        route.extra_segments = tuple(parts[3:])
    if route.resource == "namespaces" and not route.namespaced:
        route.namespace = ""
    _set_collection_verb(route, request)
    return route


def _set_collection_verb(route: Route, request: Request) -> None:
    """Turn a get without a name into a list or watch, and a delete without a name into a deletecollection."""
    if route.name:
        return
    if route.verb == "get":
        route.verb = "watch" if request.query_flag("watch") else "list"
        route.uses_field_selector = True
    elif route.verb == "delete":
        route.verb = "deletecollection"
