"""Which HTTP methods a path of the API has, and which answers it can give.

The real server has a route for each method of each path: a path without any route is unknown (404), one that has only
others does not allow the method (405), before anything else of the request is looked at
(apiserver/pkg/endpoints/installer.go). HEAD is nowhere among them.
"""

from __future__ import annotations

from batkube.api.requests.routing import Route
from batkube.api.requests.statuses import Failure, bad_request
from batkube.cluster.kinds import Resource

_OF_ITEMS = ("get", "update", "patch", "delete")
_OF_COLLECTIONS = ("list", "watch", "create", "deletecollection")
_ACROSS_NAMESPACES = ("list", "watch")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
#: In the paths of watches before there was a query parameter for it.
_OLD_WATCH = "/watch/"
#: Sub-resources of which there are tables.
_WITH_TABLES = ("", "status", "scale")


def no_such_resource() -> Failure:
    """There is nothing at the path (404)."""
    return Failure(404, "NotFound", "the server could not find the requested resource", {})


def no_such_method() -> Failure:
    """There is something at the path, for other methods (405)."""
    message = "the server does not allow this method on the requested resource"
    return Failure(405, "MethodNotAllowed", message, {})


def _verbs(resource: Resource, asked: Route) -> tuple[str, ...]:
    """Return the verbs of a path."""
    if asked.subresource and asked.verb == "watch":
        return ()
    if asked.subresource:
        return resource.subresources[asked.subresource].verbs
    if asked.verb == "watch":
        known: tuple[str, ...] = ("watch",)
    elif asked.name:
        known = _OF_ITEMS
    elif resource.namespaced and not asked.namespaced:
        known = _ACROSS_NAMESPACES
    else:
        known = _OF_COLLECTIONS
    return tuple(verb for verb in resource.verbs if verb in known)


def is_allowed(resource: Resource, asked: Route) -> bool:
    """Return whether the path has the verb."""
    return asked.verb in _verbs(resource, asked)


def check_method(resource: Resource, asked: Route, method: str) -> None:
    """Refuse a request about a built-in resource for which there is no route."""
    verbs = _verbs(resource, asked)
    if not verbs and asked.verb == "watch" and "list" in resource.verbs and _OLD_WATCH not in asked.path:
        message = f'watch is not supported on resources of kind "{resource.plural}"'
        raise Failure(405, "MethodNotAllowed", message, {"kind": resource.plural})
    if not verbs:
        raise no_such_resource()
    if method not in _METHODS or asked.verb not in verbs or (asked.verb == "watch" and method != "GET"):
        raise no_such_method()


def check_segments(asked: Route) -> None:
    """Refuse a name that cannot be one in any path (apimachinery/pkg/api/validation/path), or no namespace."""
    name = asked.name
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    if "%" in name:
        raise bad_request(f"Name parameter invalid: \"{name}\": may not contain '%'")
    if asked.verb == "deletecollection" and asked.namespaced and not asked.namespace:
        raise bad_request("Namespace parameter required.")


def has_table(resource: Resource, asked: Route) -> bool:
    """Return whether the answer can be a Table: what is not an object of the store cannot."""
    return asked.subresource in _WITH_TABLES and ("get" in resource.verbs or "list" in resource.verbs)
