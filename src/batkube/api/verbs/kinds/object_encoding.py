"""Encode objects, lists and watch events as JSON, YAML or protobuf; complete, as Tables, or as metadata only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from batkube.api.decoding.objects import decode
from batkube.api.decoding.yaml_emitter import to_yaml
from batkube.api.printing import tables
from batkube.api.printing.printers import Printer
from batkube.api.requests.messages import JSON
from batkube.api.requests.negotiation import (
    PARTIAL,
    PARTIAL_LIST,
    PROTOBUF,
    STREAM_MEDIA_TYPES,
    TABLE,
    YAML,
    ResponseForm,
)
from batkube.api.requests.statuses import Failure, bad_request
from batkube.api.verbs.storage.registry import with_resource_version
from batkube.api.wire import protobuf
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.schemas import Schema
from batkube.cluster.store import Entry, KubeObject
from batkube.kernel.instants import Instant

Convert = Callable[[KubeObject], KubeObject]
"""Converts from the storage version of a kind to the requested one."""

_encode_json = msgspec.json.Encoder().encode


def unconverted(value: KubeObject) -> KubeObject:
    """Return `value`: the conversion of kinds that have one version."""
    return value


def encode(value: object, media_type: str, schema: Schema | None = None, pretty: bool = False) -> bytes:
    """Encode an object in one of the three media types; protobuf needs its schema."""
    if media_type == PROTOBUF and schema is not None and isinstance(value, dict):
        return protobuf.wrap(value, schema)
    if media_type == YAML:
        return to_yaml(value)
    data = _encode_json(value)
    return msgspec.json.format(data, indent=2) + b"\n" if pretty else data + b"\n"


def content_type(form: ResponseForm) -> str:
    """Return the Content-Type of the response."""
    return form.media_type


def check_stream_form(form: ResponseForm, include_object: str) -> None:
    """Raise Failure for a form that watches do not support: YAML, or an invalid `includeObject` of a Table."""
    if form.media_type == YAML:
        message = "only the following media types are accepted: " + ", ".join(STREAM_MEDIA_TYPES)
        raise Failure(406, "NotAcceptable", message)
    problem = tables.include_problem(include_object) if form.transform == TABLE else None
    if problem:
        raise bad_request(problem)


class ObjectEncoder(msgspec.Struct):
    """Encodes objects of one kind in the form that a request has negotiated."""

    resource: Resource
    form: ResponseForm
    include_object: str
    convert: Convert
    printer: Printer
    kind_table: KindTable

    def encode_object(self, value: KubeObject, now: Instant) -> bytes:
        """Encode one object, which contains its resourceVersion."""
        value = self.convert(value)
        transform = self.form.transform
        if transform == PARTIAL_LIST:
            message = (
                f"you requested PartialObjectMetadataList, but the requested object is not a list (*{self._go_type()})"
            )
            raise Failure(406, "NotAcceptable", message)
        if transform == TABLE:
            value = self._to_table([value], value["metadata"], now)
        elif transform == PARTIAL:
            value = self._to_partial_metadata(value)
        return encode(value, self.form.media_type, self._protobuf_schema(transform), self.form.pretty)

    def _go_type(self, suffix: str = "") -> str:
        if self.resource.custom:
            return "unstructured.Unstructured" + suffix
        package = self.resource.group.partition(".")[0] or "core"
        return f"{package}.{self.resource.kind}{suffix}"

    def _protobuf_schema(self, transform: str, suffix: str = "") -> Schema | None:
        if self.form.media_type != PROTOBUF:
            return None
        if transform:
            return self.kind_table.definition_of("meta.k8s.io", self.form.version, transform)
        if not suffix:
            return self.resource.schema
        return self.kind_table.definition_of(self.resource.group, self.resource.version, self.resource.kind + suffix)

    def _to_table(
        self, values: list[KubeObject], metadata: KubeObject, now: Instant, headers: bool = True
    ) -> KubeObject:
        problem = tables.include_problem(self.include_object)
        if problem:
            raise bad_request(problem)
        return tables.make_table(
            self.printer,
            values,
            now,
            metadata=metadata,
            include_object=self.include_object,
            headers=headers,
            version=self.form.version,
        )

    def _to_partial_metadata(self, value: KubeObject) -> KubeObject:
        return tables.partial_object_metadata(value, self.form.version)

    def encode_list(self, entries: Sequence[Entry], metadata: dict[str, Any], now: Instant) -> bytes:
        """Encode a list of stored objects."""
        values = [self.convert(with_resource_version(*entry)) for entry in entries]
        transform = self.form.transform
        if transform == PARTIAL:
            message = (
                f"you requested PartialObjectMetadata, but the requested object is a list (*{self._go_type('List')})"
            )
            raise Failure(406, "NotAcceptable", message)
        if transform == TABLE:
            return encode(self._to_table(values, metadata, now), self.form.media_type, pretty=self.form.pretty)
        if transform == PARTIAL_LIST:
            kind, api_version = PARTIAL_LIST, f"meta.k8s.io/{self.form.version}"
            values = [self._to_partial_metadata(value) for value in values]
        else:
            kind = self.resource.list_kind or f"{self.resource.kind}List"
            api_version = self.resource.api_version
            if self.resource.custom:
                # kube-apiserver encodes lists of custom resources from maps (unstructured), which omit nothing.
                metadata = {"continue": "", **metadata}
            else:
                # Items of built-in kinds omit kind and apiVersion.
                for value in values:
                    value.pop("kind", None)
                    value.pop("apiVersion", None)
        items = values or None if transform == PARTIAL_LIST else values
        document = {"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items}
        return encode(document, self.form.media_type, self._protobuf_schema(transform, "List"), self.form.pretty)

    def event_encoder(self, now: Callable[[], Instant]) -> ObjectEventEncoder:
        """Return the encoder of the request's watch events."""
        return ObjectEventEncoder(self, now)


class ObjectEventEncoder:
    """Encodes watch events in the form of one request (the `EventEncoder` of `watches`)."""

    def __init__(self, encoder: ObjectEncoder, now: Callable[[], Instant]) -> None:
        self._encoder = encoder
        self._now = now
        form = encoder.form
        self._protobuf = form.media_type == PROTOBUF
        self.content_type = PROTOBUF + ";stream=watch" if self._protobuf else JSON
        is_table = form.transform == TABLE
        self.identity: object = None if is_table else (form, encoder.resource.api_version, encoder.resource.kind)
        self._needs_table_headers = is_table
        #: The schema of objects that are encoded as they are stored, in protobuf.
        is_stored_form = self._protobuf and not form.transform and encoder.convert is unconverted
        self._stored_schema = encoder.resource.schema if is_stored_form else None

    def encode_body(self, value: KubeObject, version: int, now: Instant) -> bytes:
        """Encode the object of an event."""
        if self._stored_schema is not None:
            return protobuf.wrap_version(value, version, self._stored_schema)
        return self._encode_converted(self._encoder.convert(with_resource_version(value, version)), now)

    def _encode_converted(self, value: KubeObject, now: Instant) -> bytes:
        encoder = self._encoder
        transform = encoder.form.transform
        if transform == TABLE:
            value = encoder._to_table([value], value["metadata"], now, self._needs_table_headers)
            self._needs_table_headers = False
        elif transform in (PARTIAL, PARTIAL_LIST):
            value = encoder._to_partial_metadata(value)
        if self._protobuf:
            schema = encoder._protobuf_schema(PARTIAL if transform else "")
            assert schema is not None
            return protobuf.wrap(value, schema)
        return _encode_json(value)

    def wrap_event(self, kind: str, body: bytes) -> bytes:
        """Return the event that contains an encoded object."""
        if self._protobuf:
            return protobuf.watch_frame(kind, body)
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)

    def bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        """Return a BOOKMARK event, whose object has only a resourceVersion and annotations."""
        resource = self._encoder.resource
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if annotations:
            metadata["annotations"] = annotations
        value: KubeObject = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        if not resource.custom:
            value = decode(value, resource.schema).object
        return self.wrap_event("BOOKMARK", self._encode_converted(value, self._now()))

    def error(self, message: str) -> bytes:
        """Return the ERROR event (410) of a watch whose history was compacted."""
        status = Failure(410, "Expired", message).status()
        if self._protobuf:
            return protobuf.watch_frame(
                "ERROR", protobuf.wrap(status, self._encoder.kind_table.definition_of("meta.k8s.io", "v1", "Status"))
            )
        return self.wrap_event("ERROR", _encode_json(status))
