"""Handler of the paths that are not about objects: discovery, OpenAPI, health, version, metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from batkube.api.access.authenticator import AUDIENCE
from batkube.api.discovery import documents
from batkube.api.discovery.health import RequestCounters, check_paths, health, version_info
from batkube.api.requests.messages import JSON, Request, Response
from batkube.api.requests.methods import method_not_allowed, resource_not_found
from batkube.api.requests.negotiation import BUILT_IN_MEDIA_TYPES, check_accepts, negotiate
from batkube.api.requests.routing import Route
from batkube.api.requests.statuses import Failure
from batkube.api.verbs.kinds.object_encoding import encode
from batkube.cluster.kinds import KindTable, Resource

_AGGREGATED = ("g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList")
_AGGREGATED_TYPE = JSON + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_OPENID = ".well-known/openid-configuration"
_JWKS = "openid/v1/jwks"
_JWKS_TYPE = "application/jwk-set+json"
#: Paths that support GET only.
_GET_ONLY_PATHS = ("api", "version", _OPENID, _JWKS)
_OTHER_PATHS = (
    f"/{_OPENID}",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    f"/{_JWKS}",
    "/version",
)


class OpenApiDocuments(Protocol):
    """The OpenAPI documents."""

    def document_at(self, path: str, accept: str) -> tuple[bytes, str, str] | None:
        """Return the document below /openapi/ at `path`: its bytes, media type and ETag; None if there is none."""


Gauges = Callable[[], list[tuple[str, str, float]]]


class NonResourcePaths:
    """Handles requests for paths that are not about objects."""

    def __init__(
        self,
        table: KindTable,
        documents: OpenApiDocuments,
        counters: RequestCounters,
        gauges: Gauges,
        verbs: documents.Verbs,
    ) -> None:
        self._kind_table = table
        self._documents = documents
        self._counters = counters
        self._gauges = gauges
        #: The server's address, as /api reports it.
        self.address = "127.0.0.1"
        self._verbs = verbs
        #: The revision of the table, and its custom resources, whose verbs can change without a new revision.
        self._custom_resources: tuple[int, list[Resource]] | None = None
        #: The aggregated discovery of the core group (True) and of all others (False), each with its table state.
        self._cached_discovery: dict[bool, tuple[object, bytes]] = {}

    def handle(self, request: Request, route: Route) -> Response | None:
        """Return the response to one request, or None if the path does not exist."""
        parts = [part for part in request.path.split("/") if part]
        if request.path.startswith("//"):
            return None
        top = parts[0] if parts else ""
        if request.method != "GET" and self._is_get_only(parts):
            raise method_not_allowed()
        if top == "api":
            return self._handle_api(request, parts)
        if top == "apis":
            return self._handle_apis(request, parts)
        if top in ("healthz", "livez", "readyz"):
            return health(top, "/".join(parts[1:]), request.query)
        if top == "openapi":
            return self._handle_openapi(request, parts)
        return self._handle_single_path(request, "/".join(parts))

    def _is_get_only(self, parts: list[str]) -> bool:
        """Return whether a path supports GET only; the other paths accept any method."""
        if parts[:1] in (["api"], ["apis"]) and len(parts) == (2 if parts[0] == "api" else 3):
            group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
            return any(each.name == group and version in each.versions for each in self._kind_table.groups())
        return "/".join(parts) in _GET_ONLY_PATHS

    def _handle_single_path(self, request: Request, path: str) -> Response | None:
        accept = request.headers.get("accept", "")
        if path == "":
            return _json_response({"paths": self._all_paths()})
        if path == "version":
            check_accepts(accept, (JSON,))
            return _json_response(version_info(self._kind_table.kubernetes_version))
        if path == _OPENID:
            check_accepts(accept, (JSON,))
            return Response(200, encode(self._openid_configuration(), JSON), JSON)
        if path == _JWKS:
            check_accepts(accept, (_JWKS_TYPE,))
            return Response(200, encode({"keys": []}, JSON), _JWKS_TYPE)
        if path == "metrics":
            return Response(200, self._counters.prometheus_text(self._gauges()), _METRICS_TYPE)
        return None

    def _openid_configuration(self) -> dict[str, Any]:
        """Return the OpenID configuration of the token issuer.

        The signing key is symmetric and secret, so `jwks_uri` lists no key.
        """
        return {
            "issuer": AUDIENCE,
            "jwks_uri": f"https://{self.address}/{_JWKS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def _document_response(self, request: Request, value: dict[str, Any], *, routed: bool = True) -> Response:
        form = negotiate(request.headers.get("accept", ""), BUILT_IN_MEDIA_TYPES, transforms=False, routed=routed)
        media_type = form.media_type if form.media_type in (JSON, "application/yaml") else JSON
        return Response(200, encode(value, media_type), media_type)

    def _handle_api(self, request: Request, parts: list[str]) -> Response:
        if len(parts) == 1:
            if _wants_aggregated(request):
                return Response(200, self._aggregated_discovery(core=True), _AGGREGATED_TYPE)
            return self._document_response(request, documents.api_versions(self.address))
        return self._handle_group_version(request, "", parts[1])

    def _handle_apis(self, request: Request, parts: list[str]) -> Response | None:
        if len(parts) == 1:
            if _wants_aggregated(request):
                return Response(200, self._aggregated_discovery(core=False), _AGGREGATED_TYPE)
            return self._document_response(request, documents.group_list(self._kind_table), routed=False)
        document = documents.api_group(self._kind_table, parts[1])
        if document is None:
            return None
        if len(parts) == 2:
            return self._document_response(request, document, routed=False)
        return self._handle_group_version(request, parts[1], parts[2])

    def _aggregated_discovery(self, *, core: bool) -> bytes:
        """Return the aggregated discovery; it is cached, since controllers request it several times a minute."""
        if self._custom_resources is None or self._custom_resources[0] != self._kind_table.revision:
            customs = [resource for resource in self._kind_table.resources() if resource.custom]
            self._custom_resources = self._kind_table.revision, customs
        state = self._kind_table.revision, [self._verbs(resource) for resource in self._custom_resources[1]]
        if core not in self._cached_discovery or self._cached_discovery[core][0] != state:
            body = encode(documents.aggregated_discovery(self._kind_table, core=core, verbs=self._verbs), JSON)
            self._cached_discovery[core] = state, body
        return self._cached_discovery[core][1]

    def _handle_group_version(self, request: Request, group: str, version: str) -> Response:
        document = documents.resource_list(self._kind_table, group, version, self._verbs)
        if document is None:
            raise resource_not_found()
        return self._document_response(request, _without_aggregated_accept(request, document))

    def _handle_openapi(self, request: Request, parts: list[str]) -> Response | None:
        document = self._documents.document_at("/".join(parts[1:]), request.headers.get("accept", ""))
        if document is None:
            return None
        body, media_type, etag = document
        if etag and request.headers.get("if-none-match") == etag:
            return Response(304, b"", media_type, (("ETag", etag),))
        return Response(200, body, media_type, (("ETag", etag),) if etag else ())

    def _all_paths(self) -> list[str]:
        """Return the paths that `/` lists."""
        groups = [group for group in self._kind_table.groups() if group.name]
        paths = ["/api", "/api/v1", "/apis", "/apis/"]
        paths += [f"/apis/{group.name}" for group in groups]
        paths += [f"/apis/{group.name}/{version}" for group in groups for version in group.versions]
        return sorted([*paths, *check_paths(), *_OTHER_PATHS])


def _json_response(value: dict[str, Any]) -> Response:
    return Response(200, encode(value, JSON, pretty=True), JSON)


def _without_aggregated_accept(request: Request, value: dict[str, Any]) -> dict[str, Any]:
    """Return `value`, and drop the request for aggregation, which a single group version does not support."""
    if "as=APIGroupDiscoveryList" in request.headers.get("accept", ""):
        request.headers = {**request.headers, "accept": JSON}
    return value


def _wants_aggregated(request: Request) -> bool:
    """Return whether the client prefers aggregated discovery; raises a 406 if it accepts other versions only."""
    accept = request.headers.get("accept", "")
    for clause in accept.split(","):
        kind, *parameters = (part.strip() for part in clause.split(";"))
        if not any(part.startswith("as=") for part in parameters):
            return False
        if kind == JSON and all(part in parameters for part in _AGGREGATED):
            return True
    if "as=" in accept:
        message = "only the following media types are accepted: " + ", ".join(BUILT_IN_MEDIA_TYPES)
        raise Failure(406, "NotAcceptable", message)
    return False
