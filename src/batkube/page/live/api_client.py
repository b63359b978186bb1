"""Requests to the API of a served cluster over HTTPS, as its administrator: what kubectl would send."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from batkube.api.manifests import ManifestClient
from batkube.api.requests.messages import JSON, Request, Response
from batkube.cluster.client import ApiError
from batkube.cluster.store import KubeObject
from batkube.serving.observed_cluster import ApiAccess

#: The longest time for a response, in seconds; webhooks may take 30.
_TIMEOUT_S = 60.0


class ApiClient:
    """A client of one cluster. It may be used by several threads: each request has a connection of its own."""

    def __init__(self, access: ApiAccess) -> None:
        self._host = urlsplit(access.url).netloc
        self._tls = ssl.create_default_context(cadata=access.authority)
        self._headers = {"authorization": f"Bearer {access.token}", "accept": JSON}
        self.kinds = access.kinds
        #: Applies and scales objects.
        self.manifests = ManifestClient(self.send, access.kinds, access.token)

    def send(self, request: Request) -> Response:
        """Send a request, and return the response. Raises ApiError if there is none."""
        query = urlencode(request.query, doseq=True)
        path = quote(request.path) + (f"?{query}" if query else "")
        connection = http.client.HTTPSConnection(self._host, timeout=_TIMEOUT_S, context=self._tls)
        try:
            connection.request(request.method, path, request.body or None, request.headers)
            response = connection.getresponse()
            return Response(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(503, "ServiceUnavailable", f"the cluster does not respond: {error}") from error
        finally:
            connection.close()

    def get(self, path: str, **query: str) -> KubeObject:
        """Return the object or the list at a path. Raises ApiError."""
        return self._object(Request("GET", path, {name: [value] for name, value in query.items()}, self._headers))

    def create(self, path: str, body: Mapping[str, object]) -> KubeObject:
        """Post an object to a path. Raises ApiError."""
        return self._write("POST", path, JSON, body)

    def patch(self, path: str, body: Mapping[str, object]) -> KubeObject:
        """Merge fields into the object at a path. Raises ApiError."""
        return self._write("PATCH", path, "application/merge-patch+json", body)

    def _write(self, method: str, path: str, content_type: str, body: Mapping[str, object]) -> KubeObject:
        headers = {**self._headers, "content-type": content_type}
        query = {"fieldManager": ["kubectl"]}
        return self._object(Request(method, path, query, headers, msgspec.json.encode(body)))

    def _object(self, request: Request) -> KubeObject:
        response = self.send(request)
        body: Any = msgspec.json.decode(response.body)
        if response.status >= 300:
            raise ApiError(response.status, body.get("reason", ""), body.get("message", ""))
        return cast(KubeObject, body)
