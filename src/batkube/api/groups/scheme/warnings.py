"""Warnings: what the server lets pass and still tells the client of, in `Warning` headers.

What a kind has to say is in the table of its group; validation has passed by then, so objects are whole.
Kubernetes: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.scheme.catalogue import kind_of
from batkube.cluster.kinds import Resource


def warnings_on_create(resource: Resource, value: Mapping[str, Any]) -> list[str]:
    """Return what the creator of a valid object is told."""
    warn = kind_of(resource.storage).warnings_on_create
    return warn(value) if warn else []


def warnings_on_update(
    resource: Resource, value: Mapping[str, Any], old: Mapping[str, Any], subresource: str
) -> list[str]:
    """Return what is told about a valid change."""
    warn = kind_of(resource.storage).warnings_on_update.get(subresource)
    return warn(value, old) if warn else []
