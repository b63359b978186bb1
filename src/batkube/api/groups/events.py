"""Events, of the core group and of events.k8s.io, which asks for more: one object, two sets of names.

Kubernetes: pkg/apis/core/validation/events.go, pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind import Kind
from batkube.api.groups.strategy import UNSUPPORTED, Strategy
from batkube.api.printing.ages import since
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_built_in_metadata_update
from batkube.api.validation.names import dns_subdomain, qualified_name, size, subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.rules import Object, Rules
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_NOT_OF_THE_NAMESPACE = "does not match event.namespace"
#: What cannot change, in the order of the checks (which look at the reason twice), with the Go type messages show.
_FIXED = (
    ("involvedObject", "core.ObjectReference"),
    ("reason", "string"),
    ("message", "string"),
    ("source", "core.EventSource"),
    ("firstTimestamp", "time"),
    ("lastTimestamp", "time"),
    ("count", "int32"),
    ("reason", "string"),
    ("type", "string"),
    ("eventTime", "time"),
    ("action", "string"),
    ("related", "*core.ObjectReference"),
    ("reportingController", "string"),
    ("reportingInstance", "string"),
)
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


# Checks


def _check_any(event: Object, reporter: str, problems: Problems) -> None:
    """Check what was always checked (Kubernetes: legacyValidateEvent)."""
    namespace = event["metadata"].get("namespace", "")
    involved = (event.get("involvedObject") or {}).get("namespace", "")
    if event.get("eventTime") is None:
        if namespace != involved and (involved or namespace != "default"):
            problems.invalid("involvedObject.namespace", involved, _NOT_OF_THE_NAMESPACE)
    else:
        if not involved and namespace not in ("default", "kube-system"):
            problems.invalid("involvedObject.namespace", involved, _NOT_OF_THE_NAMESPACE)
        _check_reporter(event, reporter, problems)
    problems.all_invalid("namespace", namespace, dns_subdomain(namespace))


def _check_reporter(event: Object, path: str, problems: Problems) -> None:
    controller = event.get("reportingComponent", "")
    if not controller:
        problems.required(path)
    problems.all_invalid(path, controller, qualified_name(controller))
    for field in ("reportingInstance", "action", "reason"):
        if not (text := event.get(field, "")):
            problems.required(field)
        if size(text) > 128:
            problems.invalid(field, "", "can have at most 128 characters")
    if size(event.get("message", "")) > 1024:
        problems.invalid("message", "", "can have at most 1024 characters")


def _check(event: Object, problems: Problems) -> None:
    _check_any(event, "reportingComponent", problems)


def _check_update(new: Object, old: Object, problems: Problems) -> None:
    _check_any(new, "reportingComponent", problems)


def _check_new(event: Object, problems: Problems) -> None:
    _check_any(event, "reportingController", problems)
    check_built_in_metadata(event["metadata"], subdomain_name, True, problems)
    _check_series(event, problems)
    if event.get("eventTime") is None:
        problems.required("eventTime")
    if (kind := event.get("type", "")) not in ("Normal", "Warning"):
        problems.invalid("type", "", f"has invalid value: {kind}")
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(field):
            problems.invalid(field, "", "needs to be unset")
    if any((event.get("source") or {}).values()):
        problems.invalid("source", "", "needs to be unset")


def _check_series(event: Object, problems: Problems) -> None:
    if (series := event.get("series")) is None:
        return
    if series.get("count", 0) < 2:
        problems.invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        problems.required("series.lastObservedTime")


def _check_new_update(new: Object, old: Object, problems: Problems) -> None:
    _check_any(new, "reportingController", problems)
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    if new.get("series") != old.get("series"):
        _check_series(new, problems)
    for path, kind in _FIXED:
        field = "reportingComponent" if path == "reportingController" else path
        value, before = new.get(field), old.get(field)
        if value != before and (value or before):
            problems.invalid(path, go_struct(kind, value), IMMUTABLE)


# Columns


def event_cells(event: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an Event, given as core/v1 or as events.k8s.io/v1, which names most fields differently."""
    target = event.get("involvedObject") or event.get("regarding") or {}
    source = event.get("source") or event.get("deprecatedSource") or {}
    first, last, count = _event_times(event, now)
    kind, name = target.get("kind", "").lower(), target.get("name", "")
    component = source.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        target.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (event.get("message") or event.get("note") or "").strip(),
        first,
        count,
        event["metadata"].get("name", ""),
    ]


def _event_times(event: KubeObject, now: Instant) -> tuple[str, str, int]:
    """Return how long ago an event was first and last seen, and how often."""
    first_time = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last_time = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or first_time
    count = event.get("count") or event.get("deprecatedCount") or 1
    series = event.get("series")
    if series is not None:
        last_time, count = series.get("lastObservedTime"), series.get("count", 0)
    return since(first_time, now), since(last_time, now), count


# Conversion


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


#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "events": Kind(
        strategy=Strategy(created_by_update=True, propagation=UNSUPPORTED),
        rules=Rules(_check, _check_update, covers_metadata=False),
        cells=event_cells,
    ),
    "events.events.k8s.io": Kind(
        rules=Rules(_check_new, _check_new_update),
        cells=event_cells,
    ),
}
