"""Schemas of Kubernetes objects: fields, their types, and how lists and maps merge.

Strict decoding, strategic merge patches, server-side apply, protobuf and OpenAPI all use these schemas. Those of
built-in kinds come from `kind_tables` (`cluster.kinds`), those of custom resources from their definitions.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import msgspec


class Shape(enum.Enum):
    """The type of a JSON value, as far as Kubernetes distinguishes types."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    #: Base64 in JSON, raw in protobuf.
    BYTES = "bytes"
    #: resource.Quantity: a string or a number in JSON.
    QUANTITY = "quantity"
    #: intstr.IntOrString.
    INT_OR_STRING = "int-or-string"
    #: metav1.Time: RFC 3339, whole seconds.
    TIME = "time"
    #: metav1.MicroTime: RFC 3339, microseconds.
    MICRO_TIME = "micro-time"
    #: metav1.Duration: Go's notation, such as "1m30s".
    DURATION = "duration"
    #: Any JSON (runtime.RawExtension, apiextensions JSON, FieldsV1).
    ANY = "any"
    STRUCT = "struct"
    LIST = "list"
    MAP = "map"


class Schema(msgspec.Struct, eq=False):
    """The schema of one JSON value."""

    shape: Shape
    #: The Go type, as kube-apiserver's error messages name it: `v1.PodSpec`, `int32`, `[]v1.Container`.
    go: str = ""
    #: Structs: the name of the OpenAPI definition, such as `io.k8s.api.core.v1.PodSpec`; "" in a custom resource.
    name: str = ""
    #: Structs: the fields by JSON name, in the order of the Go type.
    fields: dict[str, Field] = {}
    #: Lists and maps: the schema of an element.
    items: Schema | None = None
    #: Lists: `atomic` (Kubernetes' default), `set` or `map` (x-kubernetes-list-type).
    list_type: str = "atomic"
    #: Lists of type `map`: the fields that identify an element (x-kubernetes-list-map-keys).
    list_keys: tuple[str, ...] = ()
    #: Structs and maps: server-side apply gives the whole value one owner (x-kubernetes-map-type: atomic).
    atomic: bool = False
    #: Strings: the allowed values, if Kubernetes lists them.
    enum: tuple[str, ...] = ()
    #: Structs of custom resources: unknown fields are kept (x-kubernetes-preserve-unknown-fields).
    keeps_unknown: bool = False
    #: The decoder compiled from this schema on first use.
    decoder: Callable[[Any, Any], Any] | None = None
    #: The protobuf reader and writer compiled from this schema on first use.
    from_wire: Any = None
    to_wire: Any = None


class Field(msgspec.Struct, eq=False):
    """One field of a struct."""

    name: str
    schema: Schema
    required: bool = False
    #: Go leaves the field out of JSON when it is empty (`omitempty`).
    omit_empty: bool = True
    #: Go leaves the field out of JSON when it is zero, structs included (`omitzero`).
    omit_zero: bool = False
    #: The Go field is a pointer, so that zero and absent differ.
    pointer: bool = False
    #: The default in the OpenAPI document (a `+default` marker); server-side apply uses it for list keys.
    default: Any = None
    #: The strategies of a strategic merge patch: some of `merge`, `replace`, `retainKeys`.
    patch_strategy: tuple[str, ...] = ()
    #: The field by which a strategic merge patch matches list elements.
    patch_merge_key: str = ""
    #: The number and wire type (`bytes`, `varint`, `fixed64`, …) of the field in protobuf; 0 if it has none.
    number: int = 0
    wire: str = ""
    #: Fields of an embedded Go struct: in JSON they belong to the outer struct, in protobuf they are nested in messages
    #: with these field numbers, outermost first.
    within: tuple[int, ...] = ()
