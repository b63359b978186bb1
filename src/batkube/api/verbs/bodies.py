"""What is in the body of a request: the object that a client sends, decoded, checked for its kind, with defaults."""

from __future__ import annotations

from batkube.api.decoding.objects import DecodeError, ParseError, decode, parse_json, strict_warnings
from batkube.api.patches.json_patches import Json
from batkube.api.requests import statuses
from batkube.api.requests.messages import JSON, Request
from batkube.api.requests.negotiation import BUILT_IN, CUSTOM, PROTOBUF, YAML
from batkube.api.requests.statuses import Failure
from batkube.api.requests.writes import Write
from batkube.api.validation import field_errors
from batkube.api.verbs.calls import Call
from batkube.api.verbs.served import Served
from batkube.api.verbs.yaml_bodies import yaml_of
from batkube.api.wire import protobuf
from batkube.cluster.kinds import Resource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject

Kind = tuple[str, str, str]
"""Group, version and kind."""

_SUMMARY = 30
#: Versions that the real server still knows the kinds of although it does not serve them.
_PAST = {
    "admissionregistration.k8s.io": ("v1alpha1", "v1beta1"),
    "apiextensions.k8s.io": ("v1beta1",),
    "apiregistration.k8s.io": ("v1beta1",),
    "apps": ("v1beta1", "v1beta2"),
    "autoscaling": ("v2beta1", "v2beta2"),
    "batch": ("v1beta1",),
    "certificates.k8s.io": ("v1alpha1", "v1beta1"),
    "coordination.k8s.io": ("v1alpha2", "v1beta1"),
    "discovery.k8s.io": ("v1beta1",),
    "events.k8s.io": ("v1beta1",),
    "flowcontrol.apiserver.k8s.io": ("v1beta1", "v1beta2", "v1beta3"),
    "networking.k8s.io": ("v1beta1",),
    "node.k8s.io": ("v1alpha1", "v1beta1"),
    "policy": ("v1beta1",),
    "rbac.authorization.k8s.io": ("v1alpha1", "v1beta1"),
    "resource.k8s.io": ("v1alpha3", "v1beta1", "v1beta2"),
    "scheduling.k8s.io": ("v1alpha1", "v1beta1"),
    "storage.k8s.io": ("v1alpha1", "v1beta1"),
}
#: Kinds that the real server knows beside all versions, as v1.
_UNVERSIONED = ("Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList", "List")
#: The only kind that is still taken in a version that is served no more.
_OLD_EVICTION = ("policy", "v1beta1", "Eviction")
#: Where the real server's registry of kinds was made; it tells so when it does not know one.
_SCHEME = "pkg/runtime/scheme.go:110"


def media_type(request: Request) -> str:
    """Return the bare media type of the body; JSON when none is given."""
    header = request.headers.get("content-type", "")
    return header.partition(";")[0].strip().lower() or JSON


def _summary(data: bytes) -> str:
    """Show the beginning of a body as error messages do."""
    if not data:
        return "<empty>"
    head, more = data[:_SUMMARY], " ..." if len(data) > _SUMMARY else ""
    return (head.decode("utf-8", "replace") if data[:1] == b"{" else head.hex()) + more


def unsupported(accepted: tuple[str, ...]) -> Failure:
    """Refuse a body in another media type than those accepted (415)."""
    text = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return Failure(415, "UnsupportedMediaType", text)


class Bodies:
    """Reads the bodies of requests: which type they must have, and which object is in them."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def object(self, call: Call, write: Write) -> KubeObject:
        """Return the object of a create or update, decoded and defaulted."""
        resource = call.resource
        expected = (resource.group, resource.version, resource.kind)
        value = self._read(call, write, expected, resource)
        self._served.behaviour(resource).default(resource, value)
        return value

    def other(self, call: Call, write: Write, group: str, version: str, kind: str) -> KubeObject:
        """Return a body of another kind than the resource, such as a Binding or a Scale."""
        return self._read(call, write, (group, version, kind), self._served.kind(group, version, kind))

    def decoded(self, resource: Resource, value: Json) -> tuple[KubeObject, list[str]]:
        """Return the canonical object and what was not understood; raises DecodeError."""
        if not isinstance(value, dict):
            raise DecodeError("json: cannot unmarshal into an object")
        _check_type_meta(value, DecodeError)
        problem = (
            "" if resource.custom else self._kind_problem((resource.group, resource.version, resource.kind), value)
        )
        if problem:
            raise DecodeError(problem)
        decoded = self._served.behaviour(resource).decode(resource, value)
        _keep_reset(value, decoded.object)
        return decoded.object, decoded.unknown

    # Reading

    def _read(self, call: Call, write: Write, expected: Kind, resource: Resource) -> KubeObject:
        value, problems = self._parsed(call, expected, resource)
        wanted = f"{expected[0]}/{expected[1]}" if expected[0] else expected[1]
        kind, api_version = value.get("kind") or expected[2], value.get("apiVersion") or wanted
        try:
            if resource.custom:
                _match_custom(resource, value, api_version, kind)
            elif api_version != wanted or kind != expected[2]:
                self._match_version(expected, value)
                problem = self._kind_problem(expected, value)
                if problem:
                    raise DecodeError(problem)
            value["kind"], value["apiVersion"] = expected[2], wanted
            decoded = self._served.behaviour(resource).decode(resource, value)
        except DecodeError as refused:
            version = api_version.rpartition("/")[2]
            text = f'{kind} in version "{version}" cannot be handled as a {expected[2]}: {refused}'
            raise statuses.bad_request(text) from refused
        if problems or decoded.unknown:
            # YAML becomes JSON first, which is when it is seen that something is there twice.
            is_yaml = media_type(call.request) == YAML
            first, then = (problems, decoded.unknown) if is_yaml else (decoded.unknown, problems)
            self._report(write, expected, [*first, *then])
        _keep_reset(value, decoded.object)
        return decoded.object

    def _parsed(self, call: Call, expected: Kind, resource: Resource) -> tuple[KubeObject, list[str]]:
        """Return the body as an object with an apiVersion and kind that are texts, and what is there twice."""
        body, accepted = call.request.body, CUSTOM if resource.custom else BUILT_IN
        media = media_type(call.request)
        if media not in accepted:
            raise unsupported(accepted)
        try:
            value, problems = _parse(call.request, media, resource.schema)
        except (ParseError, protobuf.WireError) as problem:
            raise self._unrecognized(expected[2], str(problem), body) from problem
        if resource.custom and media != PROTOBUF:
            missing = next((field for field in ("kind", "apiVersion") if not value.get(field)), None)
            if missing == "kind":
                text = body.decode("utf-8", "replace")
                raise self._unrecognized(expected[2], f"Object 'Kind' is missing in '{text}'", body)
        return value, problems

    @staticmethod
    def _unrecognized(kind: str, problem: str, body: bytes) -> Failure:
        return statuses.bad_request(
            f"the object provided is unrecognized (must be of type {kind}): {problem} ({_summary(body)})"
        )

    def _match_version(self, expected: Kind, value: KubeObject) -> None:
        """Refuse another version of the right kind, if there is or ever was one."""
        api_version, kind = value.get("apiVersion") or "", value.get("kind") or expected[2]
        wanted = f"{expected[0]}/{expected[1]}" if expected[0] else expected[1]
        group, _, version = api_version.rpartition("/")
        if not api_version or api_version == wanted or kind != expected[2]:
            return
        if (group, version, kind) == _OLD_EVICTION:
            value["apiVersion"] = wanted
            return
        if self._served.knows(group, version, kind) or (group == expected[0] and version in _PAST.get(group, ())):
            raise statuses.bad_request(
                f"the API version in the data ({api_version}) does not match the expected API version ({wanted})"
            )

    def _kind_problem(self, expected: Kind, value: KubeObject) -> str:
        """Return why an object of this apiVersion and kind is not the one expected; "" if it is."""
        api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
        group, _, version = api_version.rpartition("/")
        if not api_version:
            group, version = expected[0], expected[1]
        kind = kind or expected[2]
        if (group, version, kind) == expected:
            return ""
        if kind in _UNVERSIONED and (group, version) == ("", "v1"):
            if kind == "Status":
                decode(value, self._served.status)
            return _unconvertible(version, kind, expected)
        if not self._served.knows(group, version, kind):
            return f'no kind "{kind}" is registered for version "{api_version or version}" in scheme "{_SCHEME}"'
        if kind != expected[2]:
            # The real server reads the body as what it says it is before it notices that this is of no use.
            decode(value, self._served.kind(group, version, kind).schema)
        return _unconvertible(version, kind, expected)

    @staticmethod
    def _report(write: Write, expected: Kind, problems: list[str]) -> None:
        """Refuse or warn of what was not understood, as fieldValidation says."""
        if write.options.validation == "Ignore":
            return
        if write.options.validation == "Strict":
            kind, version, listed = expected[2], expected[1], ", ".join(problems)
            text = f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {listed}'
            raise statuses.bad_request(text)
        write.warnings += strict_warnings(problems)

    def delete_options(self, call: Call) -> KubeObject | None:
        """Return the DeleteOptions in the body of a deletion, or None if there is no body."""
        body = call.request.body
        if not body:
            return None
        media = media_type(call.request)
        if media not in BUILT_IN:
            raise unsupported(BUILT_IN)
        schema: Schema = self._served.delete_options
        try:
            value, _ = _parse(call.request, media, schema)
            kind, version = value.get("kind") or "DeleteOptions", value.get("apiVersion") or "meta.k8s.io/v1"
            if kind != "DeleteOptions":
                raise ParseError(f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
            return decode(value, schema).object
        except (ParseError, DecodeError, protobuf.WireError) as problem:
            raise statuses.internal_error(str(problem)) from problem


def _match_custom(resource: Resource, value: KubeObject, api_version: str, kind: str) -> None:
    """Refuse an object of another version or kind: custom resources are read whatever they are, and judged then."""
    if api_version != resource.api_version:
        raise statuses.bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if kind != resource.kind:
        metadata = value.get("metadata")
        name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
        problem = field_errors.invalid("kind", kind, f"must be {resource.kind}")
        raise statuses.invalid_kind(resource.group, kind, name, [problem])


def _unconvertible(version: str, kind: str, expected: Kind) -> str:
    package = expected[0].partition(".")[0] or "core"
    return f"converting ({version}.{kind}) to ({package}.{expected[2]}): unknown conversion"


def _keep_reset(sent: KubeObject, value: KubeObject) -> None:
    """Put an empty managedFields back, which decoding leaves out: it means that nobody shall own anything."""
    metadata = sent.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") == []:
        value.setdefault("metadata", {})["managedFields"] = []


def _parse(request: Request, media: str, schema: Schema) -> tuple[KubeObject, list[str]]:
    """Return the object in a body of type `media`, and what is in it twice; raises ParseError or DecodeError."""
    if media == PROTOBUF:
        return protobuf.open_envelope(request.body, schema), []
    if media == YAML:
        value, problems = yaml_of(request)
    else:
        try:
            value, problems = parse_json(request.body, schema)
        except ParseError as problem:
            raise ParseError(_NO_KIND + str(problem)) from problem
    if value is None:
        return {}, []
    if not isinstance(value, dict):
        raise ParseError(_NO_KIND + unmarshal_problem(value, _TYPE_META))
    _check_type_meta(value, ParseError)
    if (value.get("apiVersion") or "").count("/") > 1:
        raise ParseError(f"unexpected GroupVersion string: {value['apiVersion']}")
    return value, problems


def _check_type_meta(value: KubeObject, error: type[Exception]) -> None:
    """Make sure that an object says what it is in texts, if it says it at all."""
    for field in ("apiVersion", "kind"):
        text = value.get(field)
        if text is not None and not isinstance(text, str):
            place = f"Go struct field .{field} of type string"
            raise error(f"{_NO_KIND}json: cannot unmarshal {_go_kind(value[field])} into {place}")


_NO_KIND = "couldn't get version/kind; json parse error: "
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def _go_kind(value: object) -> str:
    return {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")


def unmarshal_problem(value: object, into: str) -> str:
    """Say as Go does that a JSON value is not of the type expected."""
    return f"json: cannot unmarshal {_go_kind(value)} into Go value of type {into}"
