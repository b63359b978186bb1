"""Conversion between the versions of a kind: autoscalers have two, events are in two groups.

All other built-in kinds are served in one version; for old programs in one of the past as well, under whose name the
fields are the same. An object is stored in one of its versions and converted on the way in and out; what the other
version cannot say is kept in annotations (autoscalers) or under another name (events).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from batkube.api.groups.autoscaling import conversion as autoscalers
from batkube.api.groups.events import from_core, to_core
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject

_CONVERSIONS: Mapping[tuple[str, str], Callable[[KubeObject], dict[str, Any]]] = {
    ("autoscaling/v1", "autoscaling/v2"): autoscalers.from_v1,
    ("autoscaling/v2", "autoscaling/v1"): autoscalers.to_v1,
    ("events.k8s.io/v1", "v1"): to_core,
    ("v1", "events.k8s.io/v1"): from_core,
}


def convert_version(obj: KubeObject, source: Resource, target: Resource) -> KubeObject:
    """Return `obj`, which is in the version of `source`, in that of `target`; the given object is left as it is."""
    if source.storage != target.storage:
        return obj
    # A version of the past has the fields of today's.
    versions = tuple((each.current or each).api_version for each in (source, target))
    change = _CONVERSIONS.get((versions[0], versions[1]), dict)
    return {**change(obj), "apiVersion": target.api_version}
