"""Defaulting of the built-in kinds.

It runs directly after decoding. Each kind with defaults has a function in the table of its group. Fields that
Kubernetes' conversions to and from the internal type synchronize (`podIP` and `podIPs`) are handled there too, because
every object passes through both conversions.
"""

from __future__ import annotations

from typing import Any

from batkube.api.groups.scheme.catalogue import kind_of
from batkube.cluster.kinds import Resource


def apply_defaults(resource: Resource, obj: dict[str, Any]) -> None:
    """Set the defaults of `obj`, which is in canonical form (as `api.decoding` returns it)."""
    fill = kind_of(resource.group_resource).defaults.get(resource.version)
    if fill is not None:
        fill(obj)
