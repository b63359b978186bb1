"""Events, of the core group and of the newer one, which asks for more (Kubernetes: pkg/apis/core/validation/events.go).

Both are stored as one, with the names of the core group; which rules apply depends on the group of the request.
"""

from __future__ import annotations

from batkube.api.checks.go_values import go_struct
from batkube.api.checks.metadata import check_built_in_metadata, check_built_in_metadata_update
from batkube.api.checks.names import dns_subdomain, qualified_name, size, subdomain_name
from batkube.api.checks.problems import IMMUTABLE, Problems
from batkube.api.checks.rules import Object, Rules

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


def _create(event: Object, problems: Problems) -> None:
    _check_any(event, "reportingComponent", problems)


def _update(new: Object, old: Object, problems: Problems) -> None:
    _check_any(new, "reportingComponent", problems)


def _create_new(event: Object, problems: Problems) -> None:
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


def _update_new(new: Object, old: Object, problems: Problems) -> None:
    _check_any(new, "reportingController", problems)
    check_built_in_metadata_update(new["metadata"], old["metadata"], problems)
    if new.get("series") != old.get("series"):
        _check_series(new, problems)
    for path, kind in _FIXED:
        field = "reportingComponent" if path == "reportingController" else path
        value, before = new.get(field), old.get(field)
        if value != before and (value or before):
            problems.invalid(path, go_struct(kind, value), IMMUTABLE)


RULES = {"events": Rules(_create, _update), "events.events.k8s.io": Rules(_create_new, _update_new)}
