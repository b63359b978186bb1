"""CustomResourceDefinitions of a program, read from its module and converted to the current API version.

A program with custom resources needs their definitions to be applied first. Its module contains them. They are read
when the program is built, and stored with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from batkube.files.yaml_reader import yaml_documents
from batkube.kernel.errors import InputError

Definition = dict[str, Any]

_KIND = "CustomResourceDefinition"
_GROUP = "apiextensions.k8s.io"
#: Protected groups require this annotation (Kubernetes: apiextensions-apiserver, IsProtectedCommunityGroup).
_APPROVAL = "api-approved.kubernetes.io"
_OPEN_SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def read_definitions(module: Path, places: Sequence[str]) -> list[Definition]:
    """Return the definitions in the given folders and files of a module; each must contain at least one."""
    return [definition for place in places for definition in _definitions(module, place)]


def encode_definitions(definitions: Sequence[Definition]) -> bytes:
    """Encode definitions as JSON, which is read a hundred times as fast as YAML."""
    return msgspec.json.encode(definitions)


def decode_definitions(data: bytes) -> list[Definition]:
    """Decode definitions that were encoded by `encode_definitions`."""
    return msgspec.json.decode(data, type=list[Definition])


def _definitions(module: Path, place: str) -> list[Definition]:
    path = module / place
    files = sorted(file for file in path.glob("*.y*ml") if file.is_file()) if path.is_dir() else [path]
    definitions = [_as_v1(content) for file in files for content in _documents(file)]
    if not definitions:
        raise InputError(
            path, problem="contains no CustomResourceDefinition", remedy="check `definitions` of the catalogue"
        )
    return definitions


def _documents(file: Path) -> Iterator[Definition]:
    try:
        data = file.read_bytes()
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        raise InputError(file, problem=problem, remedy="check `definitions` of the catalogue") from error
    for content in yaml_documents(file, data):
        if isinstance(content, dict) and content.get("kind") == _KIND:
            yield content


def _as_v1(definition: Definition) -> Definition:
    """Convert a definition to version v1; the schemas of v1beta1 are replaced by open ones.

    v1beta1 is not served since Kubernetes 1.22. Its schemas need not be structural, and unknown fields were preserved,
    which v1 only does with an open schema.
    """
    if definition.get("apiVersion") != f"{_GROUP}/v1beta1":
        return definition
    metadata, old = definition["metadata"], definition["spec"]
    common = {key: old[key] for key in ("group", "scope") if key in old}
    names = {"listKind": f"{old['names']['kind']}List", "singular": old["names"]["kind"].lower(), **old["names"]}
    versions = old.get("versions") or [{"name": old["version"], "served": True, "storage": True}]
    approval = {_APPROVAL: "unapproved, of the time before approvals"} if old["group"].endswith(".k8s.io") else {}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": _KIND,
        "metadata": {"name": metadata["name"], "annotations": {**approval, **(metadata.get("annotations") or {})}},
        "spec": {**common, "names": names, "versions": [_with_open_schema(version, old) for version in versions]},
    }


def _with_open_schema(version: Definition, old: Definition) -> Definition:
    """Convert a version; v1beta1 may define subresources once for all versions."""
    subresources = version.get("subresources") or old.get("subresources")
    return {
        **{key: version[key] for key in ("name", "served", "storage")},
        **({"subresources": subresources} if subresources else {}),
        "schema": {"openAPIV3Schema": _OPEN_SCHEMA},
    }
