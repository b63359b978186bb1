"""Descriptions of API types and fields, extracted from Kubernetes' OpenAPI document.

The texts are those of Kubernetes, so this repository contains no copy of them. The document is part of the module of
Kubernetes, which is in Go's module cache once a program of Kubernetes was built on the machine. It is read there on
first use, and the result is cached. Without the module, types and fields have no descriptions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from batkube.files.replacement import write_atomically
from batkube.kernel.errors import InputError, RunFailed
from batkube.schedulers.build.cache_permissions import make_private_folder
from batkube.schedulers.build.toolchains import module_cache

Descriptions = dict[str, dict[str, str]]
"""Field descriptions by type name and field; "" stands for the type itself."""

_DOCUMENT = "api/openapi-spec/swagger.json"


def read_field_descriptions(version: str, cache: Path) -> Descriptions:
    """Return the descriptions of a version of Kubernetes (`v1.34.4`); none if its module is not on this machine."""

    def read() -> Descriptions:
        document = module_cache() / f"k8s.io/kubernetes@{version}" / _DOCUMENT
        return _descriptions(msgspec.json.decode(document.read_bytes()))

    return cached_descriptions(cache / "descriptions" / f"{version}.json", read)


def cached_descriptions(cache_file: Path, read: Callable[[], Descriptions]) -> Descriptions:
    """Return the descriptions in `cache_file`, or read and cache them; return none if they are not available."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(cache_file.read_bytes(), type=Descriptions)
    try:
        descriptions = read()
    except (OSError, RunFailed):
        return {}
    # If the cache is not writable, they are read again next time.
    with contextlib.suppress(OSError, InputError):
        make_private_folder(cache_file.parent)
        write_atomically(cache_file, msgspec.json.encode(descriptions))
    return descriptions


def _descriptions(document: dict[str, Any]) -> Descriptions:
    return {name: _descriptions_of_type(definition) for name, definition in document["definitions"].items()}


def _descriptions_of_type(definition: dict[str, Any]) -> dict[str, str]:
    fields = {name: field.get("description", "") for name, field in definition.get("properties", {}).items()}
    return {name: text for name, text in {"": definition.get("description", ""), **fields}.items() if text}
