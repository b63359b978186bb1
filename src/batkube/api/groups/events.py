"""Events of the core group and of events.k8s.io: the same objects with different field names and stricter rules.

Kubernetes: pkg/apis/core/validation/events.go, pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import UNSUPPORTED, Strategy
from batkube.api.printing.ages import time_since
from batkube.api.validation.go_values import go_struct
from batkube.api.validation.metadata import check_built_in_metadata, check_built_in_metadata_update
from batkube.api.validation.names import byte_length, dns_subdomain, qualified_name, subdomain_name
from batkube.api.validation.problems import IMMUTABLE, Problems
from batkube.api.validation.rules import Object, ValidationRules
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_NAMESPACE_MISMATCH = "does not match event.namespace"
#: The immutable fields in the order of the checks (which check the reason twice), with the Go types of messages.
_IMMUTABLE_FIELDS = (
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
#: Fields with different names in the two groups: core, events.k8s.io.
_FIELD_NAMES = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
_CORE_NAMES = {new: core for core, new in _FIELD_NAMES}
_EVENTS_NAMES = dict(_FIELD_NAMES)
#: Fields that the core group writes even if they are empty.
_WRITTEN_IN_CORE = ("reportingComponent", "reportingInstance")


# Validation


def _check_legacy(event: Object, reporter: str, problems: Problems) -> None:
    """Run the checks that older events must pass, too (Kubernetes: legacyValidateEvent)."""
    namespace = event["metadata"].get("namespace", "")
    involved = (event.get("involvedObject") or {}).get("namespace", "")
    if event.get("eventTime") is None:
        if namespace != involved and (involved or namespace != "default"):
            problems.invalid("involvedObject.namespace", involved, _NAMESPACE_MISMATCH)
    else:
        if not involved and namespace not in ("default", "kube-system"):
            problems.invalid("involvedObject.namespace", involved, _NAMESPACE_MISMATCH)
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
        if byte_length(text) > 128:
            problems.invalid(field, "", "can have at most 128 characters")
    if byte_length(event.get("message", "")) > 1024:
        problems.invalid("message", "", "can have at most 1024 characters")


def _validate_core_event(event: Object, problems: Problems) -> None:
    _check_legacy(event, "reportingComponent", problems)


def _validate_core_event_update(new: Object, old: Object, problems: Problems) -> None:
    _check_legacy(new, "reportingComponent", problems)


def _validate_event_create(event: Object, problems: Problems) -> None:
    _check_legacy(event, "reportingController", problems)
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


def _validate_event_update(new: Object, old: Object, problems: Problems) -> None:
    _check_legacy(new, "reportingController", problems)
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    if new.get("series") != old.get("series"):
        _check_series(new, problems)
    for path, kind in _IMMUTABLE_FIELDS:
        field = "reportingComponent" if path == "reportingController" else path
        value, before = new.get(field), old.get(field)
        if value != before and (value or before):
            problems.invalid(path, go_struct(kind, value), IMMUTABLE)


# Columns


def event_cells(event: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of an Event of core/v1 or events.k8s.io/v1, which have different field names."""
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
    """Return the times since an event was first and last seen, and its count."""
    first_time = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")
    last_time = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or first_time
    count = event.get("count") or event.get("deprecatedCount") or 1
    series = event.get("series")
    if series is not None:
        last_time, count = series.get("lastObservedTime"), series.get("count", 0)
    return time_since(first_time, now), time_since(last_time, now), count


# Conversion


def to_core(event: KubeObject) -> dict[str, Any]:
    """Convert an event of events.k8s.io to the core group."""
    converted = {_CORE_NAMES.get(name, name): value for name, value in event.items()}
    for name in _WRITTEN_IN_CORE:
        converted.setdefault(name, "")
    return converted


def from_core(event: KubeObject) -> dict[str, Any]:
    """Convert an event of the core group to events.k8s.io."""
    return {
        _EVENTS_NAMES.get(name, name): value
        for name, value in event.items()
        if value != "" or name not in _WRITTEN_IN_CORE
    }


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "events": Kind(
        strategy=Strategy(allow_create_on_update=True, default_propagation=UNSUPPORTED),
        rules=ValidationRules(_validate_core_event, _validate_core_event_update, covers_metadata=False),
        cells=event_cells,
    ),
    "events.events.k8s.io": Kind(
        rules=ValidationRules(_validate_event_create, _validate_event_update),
        cells=event_cells,
    ),
}
