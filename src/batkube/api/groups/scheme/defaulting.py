"""Defaults: what the server fills into an object that a client left open.

They come first of all that happens to an object, so that everything after sees whole objects. There is one function
for each kind that has any, named in the table of its group. What Kubernetes' conversions between the served and the
internal type tie together (`podIP` and `podIPs`) is done there too, because every object passes both.
"""

from __future__ import annotations

from typing import Any

from batkube.api.groups.scheme.catalogue import kind_of
from batkube.cluster.kinds import Resource


def apply_defaults(resource: Resource, obj: dict[str, Any]) -> None:
    """Fill the defaults of its kind and version into `obj`, which is canonical (as `api.decoding` leaves it)."""
    fill = kind_of(resource.group_resource).defaults.get(resource.version)
    if fill is not None:
        fill(obj)
