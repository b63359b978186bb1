"""Which HTTP methods a path of the API has, and which answers it can give.

The real server has a route for each method of each path: a path without any route is unknown (404), one that has only
others does not allow the method (405), before anything else of the request is looked at
(apiserver/pkg/endpoints/installer.go). HEAD is nowhere among them.
"""

from __future__ import annotations

from batkube.api.requests.routing import Route
from batkube.api.requests.statuses import Failure, bad_request
from batkube.cluster.kinds import Resource

_ITEM_VERBS = frozenset(("get", "update", "patch", "delete"))
_COLLECTION_VERBS = frozenset(("list", "watch", "create", "deletecollection"))
_ALL_NAMESPACES_VERBS = frozenset(("list", "watch"))
_WATCH_VERBS = frozenset(("watch",))
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
#: In the paths of watches before there was a query parameter for it.
_LEGACY_WATCH_SEGMENT = "/watch/"
#: Sub-resources of which there are tables.
_TABLE_SUBRESOURCES = ("", "status", "scale")


def resource_not_found() -> Failure:
    """There is nothing at the path (404)."""
    return Failure(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> Failure:
    """There is something at the path, for other methods (405)."""
    message = "the server does not allow this method on the requested resource"
    return Failure(405, "MethodNotAllowed", message, {})


def _allowed_verbs(resource: Resource, route: Route) -> frozenset[str]:
    """Return the verbs of a path."""
    if route.subresource:
        return frozenset() if route.verb == "watch" else frozenset(resource.subresources[route.subresource].verbs)
    if route.verb == "watch":
        return _WATCH_VERBS.intersection(resource.verbs)
    if route.name:
        return _ITEM_VERBS.intersection(resource.verbs)
    if resource.namespaced and not route.namespaced:
        return _ALL_NAMESPACES_VERBS.intersection(resource.verbs)
    return _COLLECTION_VERBS.intersection(resource.verbs)


def is_verb_allowed(resource: Resource, route: Route) -> bool:
    """Return whether the path has the verb."""
    return route.verb in _allowed_verbs(resource, route)


def check_method(resource: Resource, route: Route, method: str) -> None:
    """Refuse a request about a built-in resource for which there is no route."""
    verbs = _allowed_verbs(resource, route)
    if not verbs and route.verb == "watch" and "list" in resource.verbs and _LEGACY_WATCH_SEGMENT not in route.path:
        message = f'watch is not supported on resources of kind "{resource.plural}"'
        raise Failure(405, "MethodNotAllowed", message, {"kind": resource.plural})
    if not verbs:
        raise resource_not_found()
    if method not in _METHODS or route.verb not in verbs or (route.verb == "watch" and method != "GET"):
        raise method_not_allowed()


def check_path_names(route: Route) -> None:
    """Refuse a name that cannot be one in any path (apimachinery/pkg/api/validation/path), or no namespace."""
    name = route.name
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    if "%" in name:
        raise bad_request(f"Name parameter invalid: \"{name}\": may not contain '%'")
    if route.verb == "deletecollection" and route.namespaced and not route.namespace:
        raise bad_request("Namespace parameter required.")


def supports_table(resource: Resource, route: Route) -> bool:
    """Return whether the answer can be a Table: what is not an object of the store cannot."""
    return route.subresource in _TABLE_SUBRESOURCES and ("get" in resource.verbs or "list" in resource.verbs)
