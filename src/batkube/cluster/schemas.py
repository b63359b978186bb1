"""The shape of Kubernetes objects: what fields there are, of what type, and how lists and maps merge.

One description serves everything that must know an object's shape: strict decoding, strategic merge patches, field
ownership (server-side apply), protobuf and OpenAPI. Built-in kinds get theirs from the derived table (`cluster.kinds`),
custom resources from the schema of their definition.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import msgspec


class Shape(enum.Enum):
    """What kind of JSON value a schema stands for, as fine as Kubernetes' own types need it."""

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
    #: Any JSON at all (runtime.RawExtension, apiextensions JSON, FieldsV1).
    ANY = "any"
    STRUCT = "struct"
    LIST = "list"
    MAP = "map"


class Schema(msgspec.Struct, eq=False):
    """The shape of one JSON value."""

    shape: Shape
    #: The Go type, as error messages of the real server name it: `v1.PodSpec`, `int32`, `[]v1.Container`.
    go: str = ""
    #: Of a struct: the name of its OpenAPI definition, such as `io.k8s.api.core.v1.PodSpec`; "" for a custom one.
    name: str = ""
    #: Of a struct: its fields by JSON name, in the order of the Go type.
    fields: dict[str, Field] = {}
    #: Of a list or a map: its elements.
    items: Schema | None = None
    #: Of a list: `atomic` (the default of Kubernetes), `set` or `map` (x-kubernetes-list-type).
    list_type: str = "atomic"
    #: Of a list of type `map`: the fields that identify an element.
    list_keys: tuple[str, ...] = ()
    #: Of a struct or map: it has one owner as a whole (x-kubernetes-map-type: atomic).
    atomic: bool = False
    #: Of a string: the values allowed, if Kubernetes lists them.
    enum: tuple[str, ...] = ()
    #: Of a custom struct: fields not named here are kept (x-kubernetes-preserve-unknown-fields).
    keeps_unknown: bool = False
    #: What `cluster.decoding` compiles of this schema on first use.
    decoder: Callable[[Any, Any], Any] | None = None
    #: What `api.wire` compiles of it: how it is read from protobuf, and written.
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
    #: The default that the OpenAPI document (a `+default` marker) gives; used for list keys in server-side apply.
    default: Any = None
    #: How a strategic merge patch treats it: some of `merge`, `replace`, `retainKeys`.
    patch_strategy: tuple[str, ...] = ()
    #: By which field of the elements a strategic merge patch merges the list.
    patch_merge_key: str = ""
    #: The number and wire type (`bytes`, `varint`, `fixed64`, …) of the field in protobuf; 0 if it has none.
    number: int = 0
    wire: str = ""
    #: Go embeds the struct of this field: in JSON the field belongs to the outer struct, in protobuf it lies within
    #: messages with these numbers, the outermost first.
    within: tuple[int, ...] = ()
