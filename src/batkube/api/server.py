"""The API server without sockets: maps a Request to a Response.

A request is parsed, authenticated, authorized and only then checked in detail, so that failures come in the order of
kube-apiserver (Kubernetes: apiserver/pkg/server/config.go, DefaultBuildHandlerChain).
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.access.authenticator import Authenticator
from batkube.api.access.impersonation import MissingImpersonatedUser, effective_user
from batkube.api.access.rbac_authorizer import Attributes, Authorizer
from batkube.api.connections.protocol.stream_limits import StreamLimits
from batkube.api.discovery.health import RequestCounters
from batkube.api.discovery.non_resource_paths import NonResourcePaths
from batkube.api.requests import statuses
from batkube.api.requests.messages import JSON, TEXT, NeedsWorkerThread, Request, Response, Stream
from batkube.api.requests.negotiation import negotiate_failure
from batkube.api.requests.options import selected_name
from batkube.api.requests.routing import Route, parse_route
from batkube.api.requests.statuses import Failure
from batkube.api.requests.webhooks.calls import PendingWebhookCalls
from batkube.api.verbs.handlers.objects import PATH_NOT_FOUND, ObjectRequestHandler
from batkube.api.verbs.kinds.object_encoding import encode
from batkube.cluster.schemas import Schema
from batkube.kernel.errors import has_context
from batkube.kernel.instants import Instant

OnBug = Callable[[Exception], None]
"""Called with an unexpected exception; the server then continues."""


class ApiServer:
    """Handles requests: authentication, authorization, dispatch and error responses."""

    def __init__(
        self,
        authenticator: Authenticator,
        authorizer: Authorizer,
        objects: ObjectRequestHandler,
        paths: NonResourcePaths,
        counters: RequestCounters,
        now: Callable[[], Instant],
        settle: Callable[[Instant], None],
        status: Schema,
        on_bug: OnBug | None = None,
    ) -> None:
        """Create the server.

        * `settle`: Applies immediate effects of a write, such as serving a kind that was just defined.
        * `status`: The schema of `Status`, needed to encode protobuf.
        * `on_bug`: Called when a request fails because of a bug of ours; without it, `handle` raises the exception.
        """
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._object_handler = objects
        self._non_resource_paths = paths
        self._counters = counters
        self._now = now
        self._apply_write_effects = settle
        self._status_schema = status
        self._on_bug = on_bug
        self._stream_limits = StreamLimits()

    def handle(self, request: Request) -> Response | Stream:
        """Answer one request, however malformed it is.

        Raises NeedsWorkerThread if the request takes long and `may_defer`, and PendingWebhookCalls if webhooks have to
        be called first. A bug of ours is raised, or reported to `on_bug` and answered with 500.
        """
        route = parse_route(request)
        try:
            response = self._dispatch(request, route)
        except Failure as failure:
            response = self._failure_response(failure, request)
        except (NeedsWorkerThread, PendingWebhookCalls):
            raise
        except MissingImpersonatedUser as problem:
            text = f'Internal Server Error: "{request.path}": {problem}\n'
            response = Response(500, text.encode(), TEXT)
        except Exception as problem:
            problem.add_note(f"while handling the request: {request.method} {request.path}")
            if self._on_bug is None:
                raise
            self._on_bug(problem)
            text = f"Internal error occurred: {type(problem).__name__}: {problem}"
            details = {"causes": [{"message": f"{type(problem).__name__}: {problem}"}]}
            response = self._failure_response(Failure(500, "InternalError", text, details), request)
        self._counters.count(route.verb, route.resource, response.status if isinstance(response, Response) else 200)
        return response

    def too_large(self) -> Response:
        """Return the answer (413) to a request whose body exceeds the size limit."""
        failure = Failure(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
        return Response(413, encode(failure.status(), JSON))

    def _dispatch(self, request: Request, route: Route) -> Response | Stream:
        concerns_objects = (
            route.is_resource and not route.path.startswith("//") and self._object_handler.serves_group(route.group)
        )
        # In a served cluster, this executes what is due. Other paths, such as health checks, do not wait for it.
        now = self._now() if concerns_objects else None
        user = effective_user(self._authenticator.authenticate(request.headers), request.headers, self._authorizer)
        if not user.is_master:
            self._authorizer.require(user, _authorization_attributes(route, request))
        if now is not None:
            try:
                response = self._object_handler.handle(request, route, user, now)
            except RecursionError as error:
                if has_context(error) or not self._object_handler.is_nested_deeply(request, route):
                    raise
                raise statuses.bad_request("the request is nested too deeply") from None
            self._apply_write_effects(now)
            return response if isinstance(response, Response) else self._stream_limits.admit(response, user.name)
        return self._non_resource_paths.handle(request, route) or PATH_NOT_FOUND

    def _failure_response(self, failure: Failure, request: Request) -> Response:
        form = negotiate_failure(request.headers.get("accept", ""))
        retry = (failure.details or {}).get("retryAfterSeconds")
        headers = (*failure.headers, ("Retry-After", str(retry))) if retry else failure.headers
        return Response(
            failure.code, encode(failure.status(), form.media_type, self._status_schema), form.media_type, headers
        )


def _authorization_attributes(route: Route, request: Request) -> Attributes:
    if not route.is_resource:
        return Attributes(route.verb, path=route.path)
    # A namespace object counts as being in itself, so that a Role in it can grant access to it.
    # Kubernetes: apiserver/pkg/endpoints/request/requestinfo.go, NewRequestInfo.
    namespace = route.name if route.resource == "namespaces" and not route.namespaced else route.namespace
    name = selected_name(request) if route.uses_field_selector else route.name
    return Attributes(route.verb, route.group, route.version, route.resource, route.subresource, namespace, name)
