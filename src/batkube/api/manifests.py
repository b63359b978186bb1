"""Apply, scale and delete objects within the process, as `kubectl apply --server-side --force-conflicts`,
`kubectl scale` and `kubectl delete` do.

Apply creates a missing object. It updates an existing one to match the manifest: fields that the manifest no longer
sets are removed, fields of other managers stay (Kubernetes documentation, "Server-Side Apply"). Unknown fields are
rejected, as kubectl does by default (`fieldValidation=Strict`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from batkube.api.requests.messages import JSON, Request, Response, Stream
from batkube.api.verbs.handlers.patching import APPLY_PATCH, MERGE_PATCH
from batkube.cluster.client import ApiError
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.mapping import NAMESPACE
from batkube.cluster.store import Key, KubeObject

RequestHandler = Callable[[Request], Response | Stream]


class ManifestClient:
    """A client that sends manifests with a token that may do everything."""

    def __init__(self, handle: RequestHandler, table: KindTable, token: str, manager: str = "kubectl") -> None:
        """`manager` becomes the owner of the fields that are written."""
        self._handle = handle
        self._kind_table = table
        self._headers = {"authorization": f"Bearer {token}", "accept": JSON}
        self._query = {"fieldManager": [manager], "fieldValidation": ["Strict"]}

    def _resource_of(self, fields: KubeObject) -> Resource:
        version, kind = str(fields["apiVersion"]), str(fields["kind"])
        resource = self._kind_table.of_kind(*_split_api_version(version), kind)
        if resource is None:
            raise ApiError(404, "NotFound", f'no matches for kind "{kind}" in version "{version}"')
        return resource

    def apply(self, fields: KubeObject) -> tuple[Resource, Key]:
        """Apply a manifest and return the resource and key of the object; raises ApiError."""
        resource, metadata = self._resource_of(fields), fields["metadata"]
        namespace = (metadata.get("namespace") or NAMESPACE) if resource.namespaced else ""
        path = _collection_path(resource, namespace)
        if metadata.get("name"):
            request = self._request("PATCH", f"{path}/{metadata['name']}", APPLY_PATCH, fields)
            request.query |= {"force": ["true"]}
        else:
            # With `generateName`, each apply creates a new object, which server-side apply does not support.
            request = self._request("POST", path, JSON, fields)
        name = _response_body(self._handle(request))["metadata"]["name"]
        return resource, Key(f"{namespace}/{name}" if namespace else name)

    def delete(self, fields: KubeObject) -> tuple[Resource, Key]:
        """Delete the object that a manifest names and return its resource and key; raises ApiError."""
        resource = self._resource_of(fields) if "apiVersion" in fields else self.find_resource(str(fields["kind"]))
        return self._send("DELETE", resource, fields["metadata"], "", {"propagationPolicy": "Background"})

    def scale(self, kind: str, namespace: str, name: str, replicas: int) -> tuple[Resource, Key]:
        """Set the number of replicas of an object; raises ApiError."""
        metadata = {"namespace": namespace, "name": name}
        return self._send("PATCH", self.find_resource(kind), metadata, "/scale", {"spec": {"replicas": replicas}})

    def get_scale(self, reference: KubeObject, namespace: str) -> KubeObject:
        """Return the Scale of the referenced object; raises ApiError."""
        return _response_body(self._handle(self._request("GET", self._scale_path(reference, namespace), JSON, {})))

    def update_scale(self, reference: KubeObject, namespace: str, scale: KubeObject) -> None:
        """Write the Scale of the referenced object; raises ApiError."""
        _response_body(self._handle(self._request("PUT", self._scale_path(reference, namespace), JSON, scale)))

    def _scale_path(self, reference: KubeObject, namespace: str) -> str:
        (group, version), kind = _split_api_version(reference.get("apiVersion", "")), reference["kind"]
        # A version that is not served is ignored: any version of the kind will do.
        # Kubernetes: pkg/controller/podautoscaler/horizontal.go, which calls RESTMapper.RESTMappings with a GroupKind.
        candidates = (each for each in self._kind_table.resources() if (each.group, each.kind) == (group, kind))
        resource = self._kind_table.of_kind(group, version, kind) or next(candidates, None)
        if resource is None:
            raise ApiError(404, "NotFound", f'no matches for kind "{kind}" in group "{group}"')
        return f"{_collection_path(resource, namespace)}/{reference['name']}/scale"

    def find_resource(self, kind: str) -> Resource:
        """Return the resource of a kind or plural without a version, such as `Deployment`; raises ApiError."""
        for resource in self._kind_table.resources():
            if kind.lower() in (resource.kind.lower(), resource.plural):
                return resource
        raise ApiError(404, "NotFound", f'the server doesn\'t have a resource type "{kind}"')

    def _send(
        self, method: str, resource: Resource, metadata: KubeObject, subresource: str, fields: KubeObject
    ) -> tuple[Resource, Key]:
        namespace, name = (metadata.get("namespace") or NAMESPACE) if resource.namespaced else "", metadata["name"]
        media_type = MERGE_PATCH if method == "PATCH" else JSON
        request = self._request(
            method, f"{_collection_path(resource, namespace)}/{name}{subresource}", media_type, fields
        )
        _response_body(self._handle(request))
        return resource, Key(f"{namespace}/{name}" if namespace else name)

    def _request(self, method: str, path: str, media_type: str, fields: KubeObject) -> Request:
        headers = {**self._headers, "content-type": media_type}
        try:
            body = msgspec.json.encode(fields)
        except (OverflowError, TypeError, UnicodeEncodeError, msgspec.EncodeError) as problem:
            raise ApiError(400, "BadRequest", f"it cannot be written as JSON: {problem}") from problem
        return Request(method, path, dict(self._query), headers, body)


def _collection_path(resource: Resource, namespace: str) -> str:
    """Return the URL path of a collection."""
    group = f"/apis/{resource.group}" if resource.group else "/api"
    return f"{group}/{resource.version}/{f'namespaces/{namespace}/' if namespace else ''}{resource.plural}"


def _response_body(response: Response | Stream) -> dict[str, Any]:
    """Return the decoded body of a response; raises ApiError for an error status."""
    assert isinstance(response, Response), "only a watch is answered with a stream"
    body: dict[str, Any] = msgspec.json.decode(response.body)
    if response.status >= 300:
        raise ApiError(response.status, body.get("reason", ""), body.get("message", ""))
    return body


def _split_api_version(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version
