"""Field selectors (`--field-selector`).

Fields can only be compared for equality, and each kind has a fixed table of selectable fields (Kubernetes:
AddFieldLabelConversionFunc in pkg/apis/*/conversion.go for the names, ToSelectableFields in pkg/registry for the
values). A CustomResourceDefinition lists its own in `selectableFields`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from batkube.cluster.kinds import Resource
from batkube.cluster.selectors import SelectorError
from batkube.cluster.store import KubeObject
from batkube.text.go_format import go_quote, go_value

Getter = Callable[[KubeObject], str]
"""Returns one selectable field of an object as text; "" if it is unset."""

NAME = "metadata.name"
NAMESPACE = "metadata.namespace"


class FieldRequirement(msgspec.Struct, frozen=True):
    """One condition: the field equals the value or, if `negated`, does not."""

    field: str
    value: str
    negated: bool = False


class FieldSelector:
    """A conjunction of conditions on the fields of objects of one kind."""

    __slots__ = ("_tests", "terms")

    def __init__(self, terms: tuple[FieldRequirement, ...], fields: dict[str, Getter]) -> None:
        self.terms = terms
        self._tests = [(fields[term.field], term.value, term.negated) for term in terms]

    def __bool__(self) -> bool:
        """Whether the selector has any condition."""
        return bool(self.terms)

    def exact(self, field: str) -> str | None:
        """Return the value that `field` must have, or None. A caller can then look up a name instead of listing."""
        return next((term.value for term in self.terms if term.field == field and not term.negated), None)

    def matches(self, value: KubeObject) -> bool:
        """Return whether the selector matches the object."""
        for get, expected, negated in self._tests:  # noqa: SIM110 - runs for every listed object; `all` takes twice as long
            if (get(value) == expected) is negated:
                return False
        return True


def parse_selector_for(text: str, resource: Resource) -> FieldSelector:
    """Parse a field selector for `resource`; raises SelectorError."""
    terms = parse_field_requirements(text)
    if not terms:
        return EVERYTHING
    fields = _fields_of(resource)
    for term in terms:
        if term.field not in fields:
            raise SelectorError(_unsupported_field_message(term.field, resource))
    return FieldSelector(terms, fields)


def parse_field_requirements(text: str) -> tuple[FieldRequirement, ...]:
    """Parse the conditions of a field selector without checking the field names; raises SelectorError."""
    # Kubernetes: apimachinery/pkg/fields/selector.go, parseSelector.
    terms = []
    for part in sorted(filter(None, _find_terms(text))):
        pieces = _match_operator(part)
        if pieces is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        field, operator, value = pieces.groups()
        term = FieldRequirement(field, _unescaped(value), operator == "!=")
        if term.field or term.value:
            terms.append(term)
    return tuple(terms)


#: Terms between commas; a backslash escapes the next character.
_find_terms = re.compile(r"(?:[^,\\]|\\.?)+", re.DOTALL).findall
_match_operator = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL).fullmatch
_escape = re.compile(r"\\(.?)|[,=]", re.DOTALL)


def _unescaped(value: str) -> str:
    def unescape(match: re.Match[str]) -> str:
        if match[1] is None:
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(match[0])}")
        if match[1] not in ("\\", ",", "="):
            raise SelectorError(f"invalid field selector: invalid escape sequence: {match[0]}")
        return match[1]

    return _escape.sub(unescape, value)


# Values of fields


def _path_getter(text: str, unset: str = "") -> Getter:
    """Return a getter of the field at a dotted path; `unset` is the text of Go's zero value of its type."""
    *path, name = text.split(".")

    def get(value: KubeObject) -> str:
        parent: Any = value
        for part in path:
            parent = parent.get(part)
            if not isinstance(parent, dict):
                return unset
        field = parent.get(name)
        return unset if field is None else field if isinstance(field, str) else go_value(field)

    return get


def _first_set_getter(*paths: str) -> Getter:
    """Return a getter of the first set field of several."""
    getters = [_path_getter(path) for path in paths]
    return lambda value: next(filter(None, (get(value) for get in getters)), "")


def _pod_ip(pod: KubeObject) -> str:
    """Return the first of `status.podIPs`, or else `status.podIP`."""
    status = pod.get("status") or {}
    addresses = status.get("podIPs")
    return (addresses[0].get("ip") if addresses else status.get("podIP")) or ""


def _metadata_getters(*paths: str) -> dict[str, Getter]:
    return {path: _path_getter(path) for path in paths}


_NAME_FIELDS: dict[str, Getter] = {NAME: lambda value: value["metadata"].get("name", "")}
_NAMESPACED_FIELDS: dict[str, Getter] = {
    **_NAME_FIELDS,
    NAMESPACE: lambda value: value["metadata"].get("namespace", ""),
}

_REGARDING_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = {
    **_NAMESPACED_FIELDS,
    "reason": _path_getter("reason"),
    "type": _path_getter("type"),
}
_reporter = _first_set_getter("reportingComponent", "reportingController")
#: An event may be stored, and may be requested, with the field names of the core group or of events.k8s.io.
_INVOLVED_OBJECT_FIELDS = {
    part: _first_set_getter(f"involvedObject.{part}", f"regarding.{part}") for part in _REGARDING_FIELDS
}

#: Selectable fields by kind; a kind that is missing here has the name and the namespace.
_FIELDS: dict[str, dict[str, Getter]] = {
    "pods": {
        **_NAMESPACED_FIELDS,
        **_metadata_getters("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        **_metadata_getters("status.phase", "status.nominatedNodeName"),
        "spec.host": _path_getter("spec.nodeName"),
        "spec.hostNetwork": _path_getter("spec.hostNetwork", unset="false"),
        "status.podIP": _pod_ip,
        # kube-apiserver accepts this name but has no value for it.
        "status.podIPs": lambda _: "",
    },
    "nodes": {**_NAME_FIELDS, "spec.unschedulable": _path_getter("spec.unschedulable", unset="false")},
    "namespaces": {**_NAME_FIELDS, **_metadata_getters("status.phase")},
    "secrets": {**_NAMESPACED_FIELDS, **_metadata_getters("type")},
    "services": {**_NAMESPACED_FIELDS, **_metadata_getters("spec.clusterIP", "spec.type")},
    "replicationcontrollers": {**_NAMESPACED_FIELDS, "status.replicas": _path_getter("status.replicas", unset="0")},
    "jobs.batch": {**_NAMESPACED_FIELDS, "status.successful": _path_getter("status.succeeded", unset="0")},
    "events": {
        **_EVENT_FIELDS,
        **{f"involvedObject.{part}": get for part, get in _INVOLVED_OBJECT_FIELDS.items()},
        "reportingComponent": _reporter,
        "source": _first_set_getter(
            "source.component", "deprecatedSource.component", "reportingComponent", "reportingController"
        ),
    },
    "events.events.k8s.io": {
        **_EVENT_FIELDS,
        **{f"regarding.{part}": get for part, get in _INVOLVED_OBJECT_FIELDS.items()},
        "reportingController": _reporter,
    },
    "certificatesigningrequests.certificates.k8s.io": {**_NAME_FIELDS, **_metadata_getters("spec.signerName")},
    "clustertrustbundles.certificates.k8s.io": {**_NAME_FIELDS, **_metadata_getters("spec.signerName")},
    "podcertificaterequests.certificates.k8s.io": {
        **_NAME_FIELDS,
        **_metadata_getters("spec.signerName", "spec.podName", "spec.nodeName"),
    },
    "resourceslices.resource.k8s.io": {**_NAME_FIELDS, **_metadata_getters("spec.nodeName", "spec.driver")},
}

EVERYTHING = FieldSelector((), {})


def _fields_of(resource: Resource) -> dict[str, Getter]:
    if not resource.custom:
        return _FIELDS.get(resource.group_resource, _NAMESPACED_FIELDS)
    paths = [path.removeprefix(".") for path in resource.selectable_fields]
    return {**(_NAMESPACED_FIELDS if resource.namespaced else _NAME_FIELDS), **_metadata_getters(*paths)}


def _unsupported_field_message(field: str, resource: Resource) -> str:
    """Return the error for a field that is not selectable; kube-apiserver's wording depends on the kind."""
    if resource.group_resource == "jobs.batch":
        return f"field label {go_quote(field)} not supported for Job"
    if resource.group_resource == "resourceslices.resource.k8s.io":
        return f"field label not supported for {resource.api_version}, Kind={resource.kind}: {field}"
    if resource.custom or resource.group_resource in _FIELDS:
        return f"field label not supported: {field}"
    return f"{go_quote(field)} is not a known field selector: only {go_quote(NAME)}, {go_quote(NAMESPACE)}"
