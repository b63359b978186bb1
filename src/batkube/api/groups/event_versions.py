"""Events of the core group and of events.k8s.io: one object, two sets of names.

Kubernetes: pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from typing import Any

from batkube.cluster.store import KubeObject

#: Fields that the two have under different names: core, events.k8s.io.
_NAMES = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
_TO_CORE = {new: core for core, new in _NAMES}
_FROM_CORE = dict(_NAMES)
#: Fields that the core group writes even when they are empty.
_WRITTEN_IN_CORE = ("reportingComponent", "reportingInstance")


def to_core(event: KubeObject) -> dict[str, Any]:
    """Return an event of events.k8s.io as one of the core group."""
    converted = {_TO_CORE.get(name, name): value for name, value in event.items()}
    for name in _WRITTEN_IN_CORE:
        converted.setdefault(name, "")
    return converted


def from_core(event: KubeObject) -> dict[str, Any]:
    """Return an event of the core group as one of events.k8s.io."""
    return {
        _FROM_CORE.get(name, name): value
        for name, value in event.items()
        if value != "" or name not in _WRITTEN_IN_CORE
    }
