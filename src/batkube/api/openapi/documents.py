"""OpenAPI documents, with which clients explain, validate and merge objects.

/openapi/v3 is an index of documents, one per group version, each with a hash for client-side caching. /openapi/v2 is a
single document. Documents are generated on request. Their encoded bytes are cached until a kind is added or removed;
the decoded documents would take several times the memory.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from batkube.api.openapi.custom_kinds import custom_kind_references, definition_name
from batkube.api.openapi.path_writer import PathWriter
from batkube.api.openapi.protobuf import MEDIA_TYPES, to_protobuf
from batkube.api.openapi.schema_writer import Descriptions, SchemaWriter
from batkube.api.requests.messages import JSON
from batkube.cluster.kinds import KindTable, Resource, SubResource

Document = dict[str, Any]
RawSchema = Callable[[Resource], Document]
Describe = Callable[[str], Descriptions]
"""Loads the descriptions of types for a version of Kubernetes; called on first use."""
_META = "meta.k8s.io"
_SECURITY = {"BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"}}
#: Documents that are not about a group version, with the kind that their path returns ("" for none).
_OTHER_DOCUMENTS = {
    ".well-known/openid-configuration": "",
    "api": "APIVersions",
    "apis": "APIGroupList",
    "logs": "",
    "openid/v1/jwks": "",
    "version": "",
}


class OpenApi:
    """Generates the documents of a table of kinds; `raw_schema` returns the schema in a CustomResourceDefinition."""

    def __init__(self, table: KindTable, raw_schema: RawSchema, describe: Describe = lambda _: {}) -> None:
        self._kind_table = table
        self._describe = functools.cache(describe)
        self._raw_schema = raw_schema
        self._revision = -1
        #: The documents encoded at this revision of the table, with their ETags, by path and media type.
        self._encoded_documents: dict[str, tuple[bytes, str]] = {}

    def document_at(self, path: str, accept: str) -> tuple[bytes, str, str] | None:
        """Return the document at /openapi/`path` (`v2`, `v3`, `v3/apis/apps/v1`): bytes, media type and ETag.

        None if it does not exist, or if the client accepts neither JSON nor, for version 2, protobuf.
        """
        version, _, group_path = path.partition("/")
        media_type = _media_type(version, accept)
        if version not in ("v2", "v3") or (version == "v2" and group_path) or media_type is None:
            return None
        if self._revision != self._kind_table.revision:
            self._revision, self._encoded_documents = self._kind_table.revision, {}
        form = f"{path} {media_type}"
        if form not in self._encoded_documents:
            document = (
                self.version_2_document()
                if version == "v2"
                else self.document(group_path)
                if group_path
                else self.index()
            )
            if document is None:
                return None
            data = msgspec.json.encode(document) if media_type == JSON else to_protobuf(document)
            self._encoded_documents[form] = data, f'"{hashlib.sha512(data).hexdigest().upper()}"'
        data, etag = self._encoded_documents[form]
        return data, media_type, etag

    def index(self) -> Document:
        """Return the response to /openapi/v3."""
        paths = {}
        for path, resources in sorted(self._document_paths().items()):
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._hash(path, resources)}"}
        return {"paths": paths}

    def document(self, path: str) -> Document | None:
        """Return the response to /openapi/v3/`path`, such as `apis/apps/v1`; None if it does not exist."""
        resources = self._document_paths().get(path)
        if resources is None:
            return None
        schemas = SchemaWriter(3, self._describe(self._kind_table.kubernetes_version))
        paths = self._paths(3, schemas, resources)
        if not paths:
            paths = {f"/{path}/": self._discovery_path(path, schemas)}
        return {
            "openapi": "3.0.0",
            "info": self._info(),
            "paths": dict(sorted(paths.items())),
            "components": {
                "schemas": self._with_group_version_kinds(schemas.definitions),
                "securitySchemes": _SECURITY,
            },
        }

    def version_2_document(self) -> Document:
        """Return the response to /openapi/v2."""
        schemas = SchemaWriter(2, self._describe(self._kind_table.kubernetes_version))
        paths = self._paths(2, schemas, self._kind_table.resources())
        return {
            "swagger": "2.0",
            "info": self._info(),
            "paths": dict(sorted(paths.items())),
            "definitions": self._with_group_version_kinds(schemas.definitions),
            "securityDefinitions": _SECURITY,
            "security": [{"BearerToken": []}],
        }

    def _document_paths(self) -> dict[str, list[Resource]]:
        """Return the paths of all version 3 documents, with the resources that they describe."""
        paths: dict[str, list[Resource]] = {path: [] for path in _OTHER_DOCUMENTS}
        for resource in self._kind_table.resources():
            if resource.group:
                paths.setdefault(f"apis/{resource.group}", [])
            root = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
            paths.setdefault(root, []).append(resource)
        return paths

    def _hash(self, path: str, resources: Iterable[Resource]) -> str:
        """Return a hash that changes with the document, without generating it."""
        digest = hashlib.sha512(f"{self._kind_table.kubernetes_version} {path}".encode())
        for resource in resources:
            digest.update(repr((resource.plural, resource.kind, resource.verbs, list(resource.subresources))).encode())
            if resource.custom:
                digest.update(json.dumps(self._raw_schema(resource), sort_keys=True).encode())
        return digest.hexdigest().upper()

    # Generation

    def _info(self) -> Document:
        return {"title": "Kubernetes", "version": self._kind_table.kubernetes_version}

    def _discovery_path(self, path: str, schemas: SchemaWriter) -> Document:
        """Return the single path of a document without resources, a discovery endpoint."""
        kind = _OTHER_DOCUMENTS.get(path, "APIGroup")
        response: Document = {"description": "OK"}
        if kind:
            schema = schemas.reference(self._kind_table.definition_of(_META, "v1", kind))
            response["content"] = {"application/json": {"schema": schema}}
        return {"get": {"responses": {"200": response, "401": {"description": "Unauthorized"}}}}

    def _paths(self, version: int, schemas: SchemaWriter, resources: list[Resource]) -> dict[str, Document]:
        writer = PathWriter(version, schemas)
        options = self._kind_table.definition_of(_META, "v1", "DeleteOptions")
        status = self._kind_table.definition_of(_META, "v1", "Status")
        paths: dict[str, Document] = {}
        for resource in resources:
            kind, listed = self._kind_references(version, schemas, resource)
            paths.update(writer.resource_paths(resource, kind, listed, options, status))
            for group_path in resource.subresources.values():
                paths.update(
                    writer.subresource_path(
                        resource, group_path, self._subresource_reference(schemas, resource, group_path, kind)
                    )
                )
        return paths

    def _kind_references(self, version: int, schemas: SchemaWriter, resource: Resource) -> tuple[Document, Document]:
        """Return references to the schemas of a resource and its list."""
        if resource.custom:
            return custom_kind_references(version, schemas, resource, self._raw_schema(resource), self._kind_table)
        kind = schemas.reference(resource.schema)
        if "list" not in resource.verbs:
            return kind, kind
        listed = self._kind_table.definition_of(resource.group, resource.version, resource.kind + "List")
        return kind, schemas.reference(listed)

    def _subresource_reference(
        self, schemas: SchemaWriter, resource: Resource, group_path: SubResource, kind: Document
    ) -> Document:
        if group_path.kind == resource.kind and not group_path.version:
            return kind
        if group_path.kind.endswith("Options"):
            # exec, attach and port-forward take query parameters and return a stream.
            return {"type": "string"}
        group, version = group_path.group or resource.group, group_path.version or resource.version
        return schemas.reference(self._kind_table.definition_of(group, version, group_path.kind))

    def _with_group_version_kinds(self, definitions: dict[str, Document]) -> dict[str, Document]:
        """Return the definitions sorted by name, those of kinds with their group, version and kind."""
        kinds = self._kind_table.kinds_by_definition()
        customs = [resource for resource in self._kind_table.resources() if resource.custom]
        for resource in customs:
            for kind in (resource.kind, resource.list_kind):
                kinds[definition_name(resource, kind)] = [(resource.group, resource.version, kind)]
        return {
            name: {**document, "x-kubernetes-group-version-kind": [_group_version_kind(*each) for each in kinds[name]]}
            if name in kinds
            else document
            for name, document in sorted(definitions.items())
        }


def _media_type(version: str, accept: str) -> str | None:
    """Return the first accepted media type that is supported, or None."""
    for clause in accept.split(","):
        kind = clause.partition(";")[0].strip()
        if kind in ("", "*/*", "application/*", JSON):
            return JSON
        if version == "v2" and kind in MEDIA_TYPES:
            return MEDIA_TYPES[0]
    return None


def _group_version_kind(group: str, version: str, kind: str) -> Document:
    return {"group": group, "version": version, "kind": kind}
