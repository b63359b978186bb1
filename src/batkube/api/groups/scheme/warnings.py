"""Warnings: the texts of `Warning` headers about valid but questionable requests.

The warnings of a kind are in the table of its group; they run after validation, so required fields are set.

Kubernetes: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.scheme.catalogue import kind_of
from batkube.cluster.kinds import Resource


def warnings_on_create(resource: Resource, value: Mapping[str, Any]) -> list[str]:
    """Return the warnings for creating a valid object."""
    warn = kind_of(resource.storage).warnings_on_create
    return warn(value) if warn else []


def warnings_on_update(
    resource: Resource, value: Mapping[str, Any], old: Mapping[str, Any], subresource: str
) -> list[str]:
    """Return the warnings for a valid update."""
    warn = kind_of(resource.storage).warnings_on_update.get(subresource)
    return warn(value, old) if warn else []
