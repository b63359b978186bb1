"""Decode request bodies: parse JSON, YAML or protobuf, check the kind, and set defaults."""

from __future__ import annotations

from batkube.api.decoding.json_type_names import GO_TYPE_META, go_json_type
from batkube.api.decoding.objects import DecodeError, ParseError, decode, parse_json, strict_warnings
from batkube.api.patches.json_patches import Json
from batkube.api.requests import statuses
from batkube.api.requests.messages import JSON, Request
from batkube.api.requests.negotiation import BUILT_IN_MEDIA_TYPES, CUSTOM_MEDIA_TYPES, PROTOBUF, YAML
from batkube.api.requests.statuses import Failure
from batkube.api.requests.writes import Write
from batkube.api.validation import field_errors
from batkube.api.verbs.handlers.object_request import ObjectRequest
from batkube.api.verbs.handlers.yaml_body import parse_yaml_body
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.api.wire import protobuf
from batkube.cluster.kinds import Resource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import KubeObject

GroupVersionKind = tuple[str, str, str]
"""Group, version and kind."""

_SUMMARY_BYTES = 30
#: Versions that kube-apiserver does not serve by default, but whose kinds are registered in its scheme.
_PAST_VERSIONS = {
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
#: Kinds that are registered as unversioned, as v1.
_UNVERSIONED_KINDS = ("Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList", "List")
#: The only kind that is accepted in a version that is no longer served.
_OLD_EVICTION = ("policy", "v1beta1", "Eviction")
#: The source line where kube-apiserver creates its scheme, which appears in its errors about unknown kinds.
_SCHEME = "pkg/runtime/scheme.go:110"


def media_type(request: Request) -> str:
    """Return the media type of the body without parameters; JSON if there is none."""
    header = request.headers.get("content-type", "")
    return header.partition(";")[0].strip().lower() or JSON


def _summary(data: bytes) -> str:
    """Return the beginning of a body, as kube-apiserver quotes it in error messages."""
    # Kubernetes: apiserver/pkg/endpoints/handlers/rest.go, summarizeData.
    if not data:
        return "<empty>"
    head, more = data[:_SUMMARY_BYTES], " ..." if len(data) > _SUMMARY_BYTES else ""
    return (head.decode("utf-8", "replace") if data[:1] == b"{" else head.hex()) + more


def unsupported_media_type(accepted: tuple[str, ...]) -> Failure:
    """Return the 415 for a body whose media type is not accepted."""
    text = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return Failure(415, "UnsupportedMediaType", text)


class BodyDecoder:
    """Decodes the bodies of requests."""

    def __init__(self, served: ServedKinds) -> None:
        self._served_kinds = served

    def decode_object(self, call: ObjectRequest, write: Write) -> KubeObject:
        """Return the object of a create or update, decoded and defaulted."""
        resource = call.resource
        expected = (resource.group, resource.version, resource.kind)
        value = self._decode(call, write, expected, resource)
        self._served_kinds.behaviour(resource).default(resource, value)
        return value

    def decode_kind(self, call: ObjectRequest, write: Write, group: str, version: str, kind: str) -> KubeObject:
        """Return a body whose kind differs from the resource's, such as a Binding or a Scale."""
        return self._decode(
            call, write, (group, version, kind), self._served_kinds.resource_of_kind(group, version, kind)
        )

    def decode_value(self, resource: Resource, value: Json) -> tuple[KubeObject, list[str]]:
        """Return the object in canonical form, and strict errors such as unknown fields; raises DecodeError."""
        if not isinstance(value, dict):
            raise DecodeError("json: cannot unmarshal into an object")
        _check_type_meta(value, DecodeError)
        problem = (
            "" if resource.custom else self._kind_problem((resource.group, resource.version, resource.kind), value)
        )
        if problem:
            raise DecodeError(problem)
        decoded = self._served_kinds.behaviour(resource).decode(resource, value)
        _restore_empty_managed_fields(value, decoded.object)
        return decoded.object, decoded.strict_errors

    # Parsing and checks

    def _decode(self, call: ObjectRequest, write: Write, expected: GroupVersionKind, resource: Resource) -> KubeObject:
        value, problems = self._parse_body(call, expected, resource)
        expected_version = f"{expected[0]}/{expected[1]}" if expected[0] else expected[1]
        kind, api_version = value.get("kind") or expected[2], value.get("apiVersion") or expected_version
        try:
            if resource.custom:
                _check_custom_kind(resource, value, api_version, kind)
            elif api_version != expected_version or kind != expected[2]:
                self._check_version(expected, value)
                problem = self._kind_problem(expected, value)
                if problem:
                    raise DecodeError(problem)
            value["kind"], value["apiVersion"] = expected[2], expected_version
            decoded = self._served_kinds.behaviour(resource).decode(resource, value)
        except DecodeError as error:
            version = api_version.rpartition("/")[2]
            text = f'{kind} in version "{version}" cannot be handled as a {expected[2]}: {error}'
            raise statuses.bad_request(text) from error
        if problems or decoded.strict_errors:
            # Duplicate keys in YAML are reported first, because YAML is converted to JSON before it is decoded.
            is_yaml = media_type(call.request) == YAML
            first, then = (problems, decoded.strict_errors) if is_yaml else (decoded.strict_errors, problems)
            self._report_strict_errors(write, expected, [*first, *then])
        _restore_empty_managed_fields(value, decoded.object)
        return decoded.object

    def _parse_body(
        self, call: ObjectRequest, expected: GroupVersionKind, resource: Resource
    ) -> tuple[KubeObject, list[str]]:
        """Return the body as an object whose apiVersion and kind are strings, and its duplicate fields."""
        body, accepted = call.request.body, CUSTOM_MEDIA_TYPES if resource.custom else BUILT_IN_MEDIA_TYPES
        media = media_type(call.request)
        if media not in accepted:
            raise unsupported_media_type(accepted)
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

    def _check_version(self, expected: GroupVersionKind, value: KubeObject) -> None:
        """Raise a 400 if the object has the right kind in a different, known version."""
        api_version, kind = value.get("apiVersion") or "", value.get("kind") or expected[2]
        expected_version = f"{expected[0]}/{expected[1]}" if expected[0] else expected[1]
        group, _, version = api_version.rpartition("/")
        if not api_version or api_version == expected_version or kind != expected[2]:
            return
        if (group, version, kind) == _OLD_EVICTION:
            value["apiVersion"] = expected_version
            return
        if self._served_kinds.is_known_kind(group, version, kind) or (
            group == expected[0] and version in _PAST_VERSIONS.get(group, ())
        ):
            raise statuses.bad_request(
                f"the API version in the data ({api_version}) does not match the expected API version "
                f"({expected_version})"
            )

    def _kind_problem(self, expected: GroupVersionKind, value: KubeObject) -> str:
        """Return the error about an object of another apiVersion or kind than expected; "" if there is none."""
        api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
        group, _, version = api_version.rpartition("/")
        if not api_version:
            group, version = expected[0], expected[1]
        kind = kind or expected[2]
        if (group, version, kind) == expected:
            return ""
        if kind in _UNVERSIONED_KINDS and (group, version) == ("", "v1"):
            if kind == "Status":
                decode(value, self._served_kinds.status_schema)
            return _unconvertible_message(version, kind, expected)
        if not self._served_kinds.is_known_kind(group, version, kind):
            return f'no kind "{kind}" is registered for version "{api_version or version}" in scheme "{_SCHEME}"'
        if kind != expected[2]:
            # kube-apiserver decodes the body as its own kind first, so errors of that take precedence.
            decode(value, self._served_kinds.resource_of_kind(group, version, kind).schema)
        return _unconvertible_message(version, kind, expected)

    @staticmethod
    def _report_strict_errors(write: Write, expected: GroupVersionKind, problems: list[str]) -> None:
        """Raise a 400, add warnings, or ignore the errors, according to fieldValidation."""
        if write.options.field_validation == "Ignore":
            return
        if write.options.field_validation == "Strict":
            kind, version, listed = expected[2], expected[1], ", ".join(problems)
            text = f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: {listed}'
            raise statuses.bad_request(text)
        write.warnings += strict_warnings(problems)

    def decode_delete_options(self, call: ObjectRequest) -> KubeObject | None:
        """Return the DeleteOptions in the body of a deletion, or None if there is no body."""
        body = call.request.body
        if not body:
            return None
        media = media_type(call.request)
        if media not in BUILT_IN_MEDIA_TYPES:
            raise unsupported_media_type(BUILT_IN_MEDIA_TYPES)
        schema: Schema = self._served_kinds.delete_options_schema
        try:
            value, _ = _parse(call.request, media, schema)
            kind, version = value.get("kind") or "DeleteOptions", value.get("apiVersion") or "meta.k8s.io/v1"
            if kind != "DeleteOptions":
                raise ParseError(f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
            return decode(value, schema).object
        except (ParseError, DecodeError, protobuf.WireError) as problem:
            raise statuses.internal_error(str(problem)) from problem


def _check_custom_kind(resource: Resource, value: KubeObject, api_version: str, kind: str) -> None:
    """Raise a 400 or 422 if a custom object has a different version or kind; decoding accepts any."""
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


def _unconvertible_message(version: str, kind: str, expected: GroupVersionKind) -> str:
    package = expected[0].partition(".")[0] or "core"
    return f"converting ({version}.{kind}) to ({package}.{expected[2]}): unknown conversion"


def _restore_empty_managed_fields(sent: KubeObject, value: KubeObject) -> None:
    """Restore an empty managedFields, which decoding drops: it means that the client resets the ownership."""
    metadata = sent.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") == []:
        value.setdefault("metadata", {})["managedFields"] = []


def _parse(request: Request, media: str, schema: Schema) -> tuple[KubeObject, list[str]]:
    """Return the object in a body of type `media`, and its duplicate fields; raises ParseError or DecodeError."""
    if media == PROTOBUF:
        return protobuf.decode_envelope(request.body, schema), []
    if media == YAML:
        value, problems = parse_yaml_body(request)
    else:
        try:
            value, problems = parse_json(request.body, schema)
        except ParseError as problem:
            raise ParseError(_NO_KIND_PREFIX + str(problem)) from problem
    if value is None:
        return {}, []
    if not isinstance(value, dict):
        raise ParseError(_NO_KIND_PREFIX + unmarshal_error(value, GO_TYPE_META))
    _check_type_meta(value, ParseError)
    if (value.get("apiVersion") or "").count("/") > 1:
        raise ParseError(f"unexpected GroupVersion string: {value['apiVersion']}")
    return value, problems


def _check_type_meta(value: KubeObject, error: type[Exception]) -> None:
    """Raise `error` if apiVersion or kind are set but not strings."""
    for field in ("apiVersion", "kind"):
        text = value.get(field)
        if text is not None and not isinstance(text, str):
            place = f"Go struct field .{field} of type string"
            raise error(f"{_NO_KIND_PREFIX}json: cannot unmarshal {go_json_type(value[field])} into {place}")


_NO_KIND_PREFIX = "couldn't get version/kind; json parse error: "


def unmarshal_error(value: object, into: str) -> str:
    """Return Go's error for a JSON value of the wrong type."""
    return f"json: cannot unmarshal {go_json_type(value)} into Go value of type {into}"
