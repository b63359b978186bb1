"""What a path means: the verb, the resource and the object that a request is about.

Follows apiserver/pkg/endpoints/request/requestinfo.go, so that authorization sees what the real server sees even where
there is nothing behind a path.
"""

from __future__ import annotations

import msgspec

from batkube.api.requests.messages import Request
from batkube.cluster.store import Key

_VERB_OF_METHOD = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

#: Sub-resources of a namespace, which are not resources within it.
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


class Route(msgspec.Struct):
    """The meaning of one request."""

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
    #: More segments than an object and its sub-resource have.
    extra_segments: tuple[str, ...] = ()
    #: Whether the path has `namespaces/NAME/` before the resource.
    namespaced: bool = False
    #: Whether it is a list or watch by its query, whose field selector may name the one object that it is about.
    uses_field_selector: bool = False

    @property
    def key(self) -> Key:
        """The key of the object in the store."""
        return Key(f"{self.namespace}/{self.name}" if self.namespace else self.name)


def _path_segments(path: str) -> list[str]:
    trimmed = path.strip("/")
    return trimmed.split("/") if trimmed else []


def parse_route(request: Request) -> Route:
    """Read the path, method and the query parameters that change the verb."""
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
    """A get of no name is a list or watch, a delete of no name deletes a collection."""
    if route.name:
        return
    if route.verb == "get":
        route.verb = "watch" if request.query_flag("watch") else "list"
        route.uses_field_selector = True
    elif route.verb == "delete":
        route.verb = "deletecollection"
