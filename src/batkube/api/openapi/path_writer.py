"""The paths of the API as OpenAPI describes them: which methods a resource has, what they take and answer.

kubectl reads three things here: from `x-kubernetes-group-version-kind` which kind a resource is of (explain), from the
parameters of PATCH whether the server validates fields (apply, create), and from what PATCH takes whether a strategic
merge patch may be sent (apply); custom resources take none.
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
#: What each verb is in HTTP: the method, the action and the first word of its operation, and its parameters.
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
#: What only built-in kinds are read and patched in.
_BUILT_IN_ONLY_MEDIA_TYPES = ("application/vnd.kubernetes.protobuf", "application/strategic-merge-patch+json")
_MEDIA_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_PATCH_MEDIA_TYPES = (
    *("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"),
    "application/apply-patch+yaml",
)


class PathWriter:
    """Writes paths in one version of OpenAPI; the types they speak of go to `schemas`."""

    def __init__(self, version: int, schemas: SchemaWriter) -> None:
        self._version = version
        self._schemas = schemas

    def resource_paths(
        self, resource: Resource, kind: Document, listed: Document, options: Schema, status: Schema
    ) -> dict[str, Document]:
        """Return the paths of a resource; `kind` and `listed` are references to its type and its list's."""
        root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        within = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
        answers, takes = {"list": listed}, {"create": kind, "update": kind}
        if "delete" in resource.verbs:
            answers["delete"] = answers["deletecollection"] = self._schemas.reference(status)
            takes["delete"] = takes["deletecollection"] = self._schemas.reference(options)
        item, collection, everywhere = self._path(resource, True), self._path(resource, False), self._path(resource)
        for verb in resource.verbs:
            if verb in _VERBS:
                operation = self._operation(resource, verb, takes.get(verb), answers.get(verb, kind))
                (collection if verb in _COLLECTION_VERBS else item)[_VERBS[verb][0]] = operation
        paths = {f"{within}/{resource.plural}": collection, f"{within}/{resource.plural}/{{name}}": item}
        if resource.namespaced and "list" in resource.verbs:
            everywhere["get"] = self._operation(resource, "list", None, listed, "ForAllNamespaces")
            paths[f"{root}/{resource.plural}"] = everywhere
        # A path without a method is none: a review can only be created, so there is nothing at {name}.
        return {path: methods for path, methods in paths.items() if len(methods) > 1}

    def subresource_path(self, resource: Resource, below: SubResource, kind: Document) -> dict[str, Document]:
        """Return the path of a sub-resource; `kind` refers to the type that it takes and answers."""
        root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        within = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
        methods = self._path(resource, True)
        for verb in below.verbs:
            takes = kind if verb in ("create", "update") else None
            operation = self._operation(resource, verb, takes, kind, below.name.capitalize(), below)
            methods[_VERBS[verb][0]] = operation
        return {f"{within}/{resource.plural}/{{name}}/{below.name}": methods}

    def _path(self, resource: Resource, named: bool = False) -> Document:
        """Return a path without methods: the parameters in the path itself."""
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
        takes: Document | None,
        answers: Document,
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
            takes = self._schemas.named_reference(PATCH_DEFINITION)
        left_out = _BUILT_IN_ONLY_MEDIA_TYPES if resource.custom else ()
        consumed = [media for media in _PATCH_MEDIA_TYPES if media not in left_out] if verb == "patch" else ["*/*"]
        produced = [media for media in _MEDIA_TYPES if media not in left_out]
        return self._with_bodies(operation, takes, answers, consumed, produced)

    def _with_bodies(
        self, operation: Document, takes: Document | None, answers: Document, consumed: list[str], produced: list[str]
    ) -> Document:
        if self._version == 3:
            if takes is not None:
                content = {media: {"schema": takes} for media in consumed}
                operation["requestBody"] = {"content": content, "required": operation["x-kubernetes-action"] == "patch"}
            answered: Document = {"content": {media: {"schema": answers} for media in produced}}
        else:
            operation.update(consumes=consumed, produces=produced, schemes=["https"])
            if takes is not None:
                body = {"name": "body", "in": "body", "required": True, "schema": takes}
                operation["parameters"] = [body, *operation["parameters"]]
            answered = {"schema": answers}
        operation["responses"] = {"200": {"description": "OK", **answered}, "401": {"description": "Unauthorized"}}
        return operation


def _camel_case(tag: str) -> str:
    return "".join(part.capitalize() for part in tag.split("_"))
