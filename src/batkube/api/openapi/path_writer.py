"""Generate the OpenAPI paths of resources: methods, parameters, bodies and responses.

kubectl uses three parts of them:

* `x-kubernetes-group-version-kind`, to find the kind of a resource (explain),
* the parameters of PATCH, to see whether the server validates fields (apply, create),
* the media types of PATCH, to see whether it supports strategic merge patches (apply). Custom resources do not.
"""

from __future__ import annotations

from typing import Any

from batkube.api.openapi.schema_writer import PATCH_DEFINITION, SchemaWriter
from batkube.cluster.kinds import Resource, SubResource
from batkube.cluster.schemas import Schema

Document = dict[str, Any]

_LIST_PARAMETERS = (
    *("allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion"),
    *("resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"),
)
_DELETE_PARAMETERS = (
    *("dryRun", "gracePeriodSeconds", "ignoreStoreReadErrorWithClusterBreakingPotential", "orphanDependents"),
    "propagationPolicy",
)
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_PARAMETER_TYPES = {
    **dict.fromkeys(("limit", "timeoutSeconds", "gracePeriodSeconds"), "integer"),
    **dict.fromkeys(
        (
            *("allowWatchBookmarks", "sendInitialEvents", "watch", "force", "orphanDependents"),
            "ignoreStoreReadErrorWithClusterBreakingPotential",
        ),
        "boolean",
    ),
}
#: The HTTP method, `x-kubernetes-action`, prefix of the operationId and parameters of each verb.
_VERBS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "get": ("get", "get", "read", ()),
    "list": ("get", "list", "list", _LIST_PARAMETERS),
    "create": ("post", "post", "create", _WRITE_PARAMETERS),
    "update": ("put", "put", "replace", _WRITE_PARAMETERS),
    "patch": ("patch", "patch", "patch", (*_WRITE_PARAMETERS, "force")),
    "delete": ("delete", "delete", "delete", _DELETE_PARAMETERS),
    "deletecollection": (
        "delete",
        "deletecollection",
        "deleteCollection",
        (*_DELETE_PARAMETERS, *_LIST_PARAMETERS[1:-1]),
    ),
}
_COLLECTION_VERBS = ("list", "create", "deletecollection")
#: Media types that custom resources do not support.
_BUILT_IN_ONLY_MEDIA_TYPES = ("application/vnd.kubernetes.protobuf", "application/strategic-merge-patch+json")
_MEDIA_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_PATCH_MEDIA_TYPES = (
    *("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"),
    "application/apply-patch+yaml",
)


class PathWriter:
    """Generates paths in one version of OpenAPI; adds the schemas they refer to to `schemas`."""

    def __init__(self, version: int, schemas: SchemaWriter) -> None:
        self._version = version
        self._schemas = schemas

    def resource_paths(
        self, resource: Resource, kind: Document, listed: Document, options: Schema, status: Schema
    ) -> dict[str, Document]:
        """Return the paths of a resource; `kind` and `listed` refer to the schemas of the resource and its list."""
        root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        base = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
        responses, bodies = {"list": listed}, {"create": kind, "update": kind}
        if "delete" in resource.verbs:
            responses["delete"] = responses["deletecollection"] = self._schemas.reference(status)
            bodies["delete"] = bodies["deletecollection"] = self._schemas.reference(options)
        item, collection, everywhere = self._path(resource, True), self._path(resource, False), self._path(resource)
        for verb in resource.verbs:
            if verb in _VERBS:
                operation = self._operation(resource, verb, bodies.get(verb), responses.get(verb, kind))
                (collection if verb in _COLLECTION_VERBS else item)[_VERBS[verb][0]] = operation
        paths = {f"{base}/{resource.plural}": collection, f"{base}/{resource.plural}/{{name}}": item}
        if resource.namespaced and "list" in resource.verbs:
            everywhere["get"] = self._operation(resource, "list", None, listed, "ForAllNamespaces")
            paths[f"{root}/{resource.plural}"] = everywhere
        # Drop paths without methods: a review, for example, can only be created, so it has no path with {name}.
        return {path: methods for path, methods in paths.items() if len(methods) > 1}

    def subresource_path(self, resource: Resource, below: SubResource, kind: Document) -> dict[str, Document]:
        """Return the path of a subresource; `kind` refers to the schema of its body and response."""
        root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        base = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
        methods = self._path(resource, True)
        for verb in below.verbs:
            bodies = kind if verb in ("create", "update") else None
            operation = self._operation(resource, verb, bodies, kind, below.name.capitalize(), below)
            methods[_VERBS[verb][0]] = operation
        return {f"{base}/{resource.plural}/{{name}}/{below.name}": methods}

    def _path(self, resource: Resource, named: bool = False) -> Document:
        """Return a path item without methods, with its path parameters."""
        names = [*(["name"] if named else []), *(["namespace"] if resource.namespaced else [])]
        parameters = [self._parameter(name, "path") for name in names]
        return {"parameters": [*parameters, self._parameter("pretty", "query")]}

    def _parameter(self, name: str, place: str) -> Document:
        kind = {"type": _PARAMETER_TYPES.get(name, "string"), "uniqueItems": True}
        parameter: Document = {"name": name, "in": place}
        if place == "path":
            parameter["required"] = True
        return {**parameter, "schema": kind} if self._version == 3 else {**parameter, **kind}

    def _operation(
        self,
        resource: Resource,
        verb: str,
        bodies: Document | None,
        responses: Document,
        suffix: str = "",
        below: SubResource | None = None,
    ) -> Document:
        _, action, word, names = _VERBS[verb]
        group, version, kind = resource.group, resource.version, resource.kind
        if below is not None:
            group, version, kind = below.group or group, below.version or version, below.kind
        tag = f"{resource.group.partition('.')[0] or 'core'}_{resource.version}"
        scope = "Namespaced" if resource.namespaced and suffix != "ForAllNamespaces" else ""
        operation: Document = {
            "tags": [tag],
            "operationId": f"{word}{_camel_case(tag)}{scope}{resource.kind}{suffix}",
            "parameters": [self._parameter(name, "query") for name in names],
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
        }
        if verb == "patch":
            bodies = self._schemas.named_reference(PATCH_DEFINITION)
        unsupported = _BUILT_IN_ONLY_MEDIA_TYPES if resource.custom else ()
        consumed = [media for media in _PATCH_MEDIA_TYPES if media not in unsupported] if verb == "patch" else ["*/*"]
        produced = [media for media in _MEDIA_TYPES if media not in unsupported]
        return self._with_bodies(operation, bodies, responses, consumed, produced)

    def _with_bodies(
        self,
        operation: Document,
        bodies: Document | None,
        responses: Document,
        consumed: list[str],
        produced: list[str],
    ) -> Document:
        if self._version == 3:
            if bodies is not None:
                content = {media: {"schema": bodies} for media in consumed}
                operation["requestBody"] = {"content": content, "required": operation["x-kubernetes-action"] == "patch"}
            answered: Document = {"content": {media: {"schema": responses} for media in produced}}
        else:
            operation.update(consumes=consumed, produces=produced, schemes=["https"])
            if bodies is not None:
                body = {"name": "body", "in": "body", "required": True, "schema": bodies}
                operation["parameters"] = [body, *operation["parameters"]]
            answered = {"schema": responses}
        operation["responses"] = {"200": {"description": "OK", **answered}, "401": {"description": "Unauthorized"}}
        return operation


def _camel_case(tag: str) -> str:
    return "".join(part.capitalize() for part in tag.split("_"))
