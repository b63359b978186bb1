"""Check which HTTP methods a path supports.

kube-apiserver installs a route per path and method (apiserver/pkg/endpoints/installer.go). A path without any route is
answered with 404, a path with routes for other methods only with 405, before anything else in the request is checked.
There are no routes for HEAD.
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
#: Part of the deprecated watch paths, which precede the query parameter `watch`.
_LEGACY_WATCH_SEGMENT = "/watch/"
#: Subresources that can be rendered as a Table.
_TABLE_SUBRESOURCES = ("", "status", "scale")


def resource_not_found() -> Failure:
    """Return the 404 of a path that does not exist."""
    return Failure(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> Failure:
    """Return the 405 of a path that supports other methods only."""
    message = "the server does not allow this method on the requested resource"
    return Failure(405, "MethodNotAllowed", message, {})


def _allowed_verbs(resource: Resource, route: Route) -> frozenset[str]:
    """Return the verbs that the path of the route supports."""
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
    """Return whether the path of the route supports its verb."""
    return route.verb in _allowed_verbs(resource, route)


def check_method(resource: Resource, route: Route, method: str) -> None:
    """Raise a 404 or 405 if kube-apiserver has no route for the path and method of a built-in resource."""
    verbs = _allowed_verbs(resource, route)
    if not verbs and route.verb == "watch" and "list" in resource.verbs and _LEGACY_WATCH_SEGMENT not in route.path:
        message = f'watch is not supported on resources of kind "{resource.plural}"'
        raise Failure(405, "MethodNotAllowed", message, {"kind": resource.plural})
    if not verbs:
        raise resource_not_found()
    if method not in _METHODS or route.verb not in verbs or (route.verb == "watch" and method != "GET"):
        raise method_not_allowed()


def check_path_names(route: Route) -> None:
    """Raise a 400 for a name that is invalid in a path, or for a missing namespace."""
    # Kubernetes: apimachinery/pkg/api/validation/path/name.go, IsValidPathSegmentName.
    name = route.name
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    if "%" in name:
        raise bad_request(f"Name parameter invalid: \"{name}\": may not contain '%'")
    if route.verb == "deletecollection" and route.namespaced and not route.namespace:
        raise bad_request("Namespace parameter required.")


def supports_table(resource: Resource, route: Route) -> bool:
    """Return whether the response can be a Table, which only stored objects can."""
    return route.subresource in _TABLE_SUBRESOURCES and ("get" in resource.verbs or "list" in resource.verbs)
