"""Conversion between the versions of built-in kinds: autoscalers have two versions, events are in two groups.

All other kinds are served in one version, or, for old clients, also under the name of a removed version with the same
fields. An object is stored in one version and converted on every read and write. Fields that a version lacks are kept
in annotations (autoscalers) or under another name (events).
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
    """Convert `obj` from the version of `source` to that of `target`; the object itself is not modified."""
    if source.storage != target.storage:
        return obj
    # A removed version has the fields of the current one.
    versions = tuple((resource.current or resource).api_version for resource in (source, target))
    change = _CONVERSIONS.get((versions[0], versions[1]), dict)
    return {**change(obj), "apiVersion": target.api_version}
