"""Protobuf: bytes as Go encodes them, and objects as decoded from JSON."""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import re
import subprocess
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from batkube.api.decoding.objects import decode as canonical
from batkube.api.wire import encoding, protobuf
from batkube.cluster.kinds import KindTable, Resource
from batkube.cluster.schemas import Field, Schema, Shape
from batkube.kernel.errors import RunFailed
from batkube.schedulers.build.builder import ensure_built
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.recipes import BuildRecipe, GoMod

TABLE = KindTable.builtin()
#: Kinds that are stored: they can be created and listed.
STORED = [each for each in TABLE.resources() if {"create", "list"} <= {*each.verbs}]
POD = TABLE.definition_of("", "v1", "Pod")
GO_PROGRAM = Path(__file__).resolve().parents[2] / "go" / "protobuf" / "main.go"
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Random objects

TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6)
#: Go's zero time, the first second of year 1, is written as none.
DATES = st.datetimes(min_value=datetime.datetime(2, 1, 1))
JSON_VALUES = st.recursive(
    TEXTS | st.integers(-(2**31), 2**31) | st.booleans(),
    lambda part: st.dictionaries(TEXTS, part, max_size=2),
    max_leaves=4,
)
VALUES: dict[Shape, Callable[[Schema], st.SearchStrategy[Any]]] = {
    Shape.STRING: lambda schema: TEXTS,
    Shape.INTEGER: lambda schema: st.integers(-(2**31), 2**31 - 1),
    Shape.NUMBER: lambda schema: st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number or 1.5),
    Shape.BOOLEAN: lambda schema: st.booleans(),
    Shape.BYTES: lambda schema: st.binary(max_size=5).map(lambda data: base64.b64encode(data).decode()),
    Shape.QUANTITY: lambda schema: st.sampled_from(["0", "1", "100m", "1500m", "4Gi", "1e3", "0.5", "-3", "1024Ki"]),
    Shape.INT_OR_STRING: lambda schema: st.integers(-(2**31), 2**31 - 1) | TEXTS,
    Shape.TIME: lambda schema: DATES.map(lambda at: at.isoformat(timespec="seconds") + "Z"),
    Shape.MICRO_TIME: lambda schema: DATES.map(lambda at: at.isoformat(timespec="microseconds") + "Z"),
    Shape.DURATION: lambda schema: st.sampled_from(
        ["0s", "1.5s", "1h0m0s", "250ms", "-1m30s", "1µs", "876000h0m0.000000001s"]
    ),
}


@st.composite
def values(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Any:  # noqa: ANN401 - any JSON
    """Draw a value of `schema` with a few of its fields."""
    if schema.shape in VALUES:
        return draw(VALUES[schema.shape](schema))
    if schema.shape is Shape.ANY:
        return draw(_free_values(schema, depth))
    if schema.shape is Shape.LIST:
        return draw(st.lists(values(schema.items, depth + 1), min_size=1, max_size=2))
    if schema.shape is Shape.MAP:
        return draw(st.dictionaries(TEXTS, values(schema.items, depth + 1), min_size=1, max_size=2))
    fields = [field for field in schema.fields.values() if field.number and (depth < 7 or _is_plain(field))]
    if not fields:
        return {}
    chosen = draw(st.lists(st.sampled_from(fields), max_size=5, unique_by=lambda field: field.name))
    return {field.name: draw(values(field.schema, depth + 1)) for field in chosen}


def _is_plain(field: Field) -> bool:
    return field.schema.shape in VALUES


def _free_values(schema: Schema, depth: int) -> st.SearchStrategy[Any]:
    if schema.items is None:
        return st.dictionaries(TEXTS, JSON_VALUES, min_size=1, max_size=2)
    nested = values(schema.items, depth + 3)
    if schema.name.endswith("OrBool"):
        return st.booleans() | nested
    return nested | st.lists(TEXTS if schema.name.endswith("StringArray") else nested, min_size=1, max_size=2)


@st.composite
def stored_objects(draw: st.DrawFn) -> tuple[Resource, dict[str, Any]]:
    """Draw an object of a built-in kind in canonical form."""
    resource = draw(st.sampled_from(STORED))
    drawn = draw(values(resource.schema))
    whole = {"kind": resource.kind, "apiVersion": resource.api_version, **drawn}
    return resource, canonical(whole, resource.schema).object


#: One value of each shape, none of them zero.
SAMPLES: dict[Shape, Any] = {
    Shape.STRING: "é",
    Shape.INTEGER: -7,
    Shape.NUMBER: 0.5,
    Shape.BOOLEAN: True,
    Shape.BYTES: "AAEC",
    Shape.QUANTITY: "1500m",
    Shape.INT_OR_STRING: "50%",
    Shape.TIME: "1969-12-31T23:59:59Z",
    Shape.MICRO_TIME: "2026-11-15T18:31:08.361809Z",
    Shape.DURATION: "1m30s",
    Shape.ANY: {"f:b": {}, "f:a": [1, True, None]},
}


def filled(schema: Schema, around: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - any JSON
    """Return a value with every field, except for recursive types."""
    if schema.shape is Shape.ANY and schema.items is not None:
        inner = filled(schema.items, around)
        return [inner] if schema.name.endswith("OrArray") else inner
    if schema.shape is Shape.LIST:
        return [filled(schema.items, around)] * 2
    if schema.shape is Shape.MAP:
        return {"b": filled(schema.items, around), "a": filled(schema.items, around)}
    if schema.shape is not Shape.STRUCT:
        return SAMPLES[schema.shape]
    if around.count(schema.name) > 1:
        return {}
    inside = (*around, schema.name)
    return {name: filled(field.schema, inside) for name, field in schema.fields.items() if field.number}


# Laws


@QUICK
@given(stored_objects())
def test_an_object_survives_a_round_trip(drawn: tuple[Resource, dict[str, Any]]) -> None:
    resource, value = drawn

    enveloped = protobuf.wrap(value, resource.schema)

    assert protobuf.decode_envelope(enveloped, resource.schema) == value


@pytest.mark.parametrize("resource", STORED, ids=lambda resource: resource.group_resource)
def test_every_field_of_every_kind_survives_a_round_trip(resource: Resource) -> None:
    value = canonical(filled(resource.schema), resource.schema).object

    assert protobuf.decode(protobuf.encode(value, resource.schema), resource.schema) == value


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(STORED), st.binary(max_size=60))
def test_arbitrary_bytes_are_decoded_or_raise_a_wire_error(resource: Resource, data: bytes) -> None:
    """Bytes that can be decoded give an object that survives a round trip; all others raise WireError."""
    with contextlib.suppress(protobuf.WireError):
        value = protobuf.decode(data, resource.schema)
        assert protobuf.decode(protobuf.encode(value, resource.schema), resource.schema) == value
    with contextlib.suppress(protobuf.WireError):
        assert set(protobuf.decode_envelope(protobuf.MAGIC + data, resource.schema)) <= {*resource.schema.fields}


@QUICK
@given(stored_objects(), st.data())
def test_a_damaged_message_is_decoded_or_rejected(drawn: tuple[Resource, dict[str, Any]], data: st.DataObject) -> None:
    resource, value = drawn
    message = bytearray(protobuf.encode(value, resource.schema))
    assume(message)
    message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))

    try:
        decoded = protobuf.decode(bytes(message), resource.schema)
    except protobuf.WireError:
        return
    assert isinstance(decoded, dict)


def test_a_truncated_message_ends_unexpectedly() -> None:
    message = protobuf.encode({"metadata": {"name": "web"}}, POD)

    with pytest.raises(protobuf.WireError, match="unexpected EOF"):
        protobuf.decode(message[:3], POD)


def test_a_deeply_nested_schema_is_rejected() -> None:
    schema = TABLE.definition_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    properties = (
        next(field for name, field in schema.fields["spec"].schema.fields.items() if name == "versions")
        .schema.items.fields["schema"]
        .schema.fields["openAPIV3Schema"]
    )
    number = properties.schema.fields["not"].number
    message = b""
    for _ in range(5000):
        tag = number << 3 | 2
        prefix = bytes((tag & 0x7F | 0x80, tag >> 7)) if tag > 0x7F else bytes((tag,))
        message = prefix + _length(len(message)) + message

    with pytest.raises(protobuf.WireError, match="depth"):
        protobuf.decode(message, properties.schema)


def _length(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes((number & 0x7F | 0x80,))
        number >>= 7
    return out + bytes((number,))


# Known bytes


def test_unset_strings_are_written_and_unset_pointers_are_not() -> None:
    schema = Schema(
        Shape.STRUCT,
        fields={
            "a": Field("a", Schema(Shape.STRING), number=1),
            "b": Field("b", Schema(Shape.STRING), number=2, pointer=True),
            "c": Field("c", Schema(Shape.INTEGER, go="int32"), number=3),
        },
    )

    assert protobuf.encode({}, schema) == b"\x0a\x00\x18\x00"
    assert protobuf.encode({"b": "", "c": -1}, schema) == b"\x0a\x00\x12\x00\x18" + b"\xff" * 9 + b"\x01"
    assert protobuf.decode(b"\x18" + b"\xff" * 9 + b"\x01", schema) == {"c": -1}


def test_packed_lists_are_decoded() -> None:
    schema = Schema(
        Shape.STRUCT, fields={"n": Field("n", Schema(Shape.LIST, items=Schema(Shape.INTEGER, go="int64")), number=1)}
    )

    assert protobuf.encode({"n": [1, 300]}, schema) == b"\x08\x01\x08\xac\x02"
    assert protobuf.decode(b"\x0a\x03\x01\xac\x02", schema) == {"n": [1, 300]}


def test_an_invalid_envelope_is_rejected_with_the_message_of_kube_apiserver() -> None:
    with pytest.raises(protobuf.WireError, match=re.escape("expected prefix [107 56 115 0]")):
        protobuf.unwrap(b"{}")
    with pytest.raises(protobuf.WireError, match="empty data"):
        protobuf.unwrap(b"")


def test_an_object_of_another_kind_is_not_decoded() -> None:
    enveloped = protobuf.wrap({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}, POD)

    assert protobuf.decode_envelope(enveloped, POD) == {"kind": "Node", "apiVersion": "v1"}


def test_shared_parts_are_encoded_equally_in_all_objects() -> None:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    pods = [
        {"metadata": {"name": f"pod-{number}"}, "spec": {"containers": containers, "nodeName": f"node-{number % 3}"}}
        for number in range(2000)
    ]

    apart = [protobuf.encode(msgspec.json.decode(msgspec.json.encode(pod)), POD) for pod in pods]

    assert [protobuf.encode(pod, POD) for pod in pods] == apart
    assert [protobuf.encode(pod, POD) for pod in reversed(pods)] == apart[::-1]


@QUICK
@given(data=st.data(), resource=st.sampled_from(STORED))
def test_a_stored_object_is_encoded_as_with_its_version_in_it(data: st.DataObject, resource: Resource) -> None:
    value = data.draw(values(resource.schema))
    metadata = {name: part for name, part in value.get("metadata", {}).items() if name != "resourceVersion"}
    version = data.draw(st.integers(1, 2**40))
    stored = {**value, "metadata": metadata}
    complete = {**value, "metadata": {**metadata, "resourceVersion": str(version)}}

    for _ in range(2):  # the second time from the cache
        assert protobuf.wrap_version(stored, version, resource.schema) == protobuf.wrap(complete, resource.schema)


class _Spec(dict[str, Any]):
    """A spec that supports weak references."""


def test_parts_of_deleted_objects_do_not_stay_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "_MAX_CACHE_BYTES", 1 << 21)
    specs: list[weakref.ref[_Spec]] = []
    for resource in STORED:
        for _ in range(500 if "spec" in resource.schema.fields else 0):
            spec = _Spec()
            specs.append(weakref.ref(spec))
            protobuf.encode({"metadata": {"name": "x"}, "spec": spec}, resource.schema)
    del spec

    assert sum(spec() is not None for spec in specs) < min(10_000, len(specs) / 2)


def test_a_watch_event_is_a_frame_around_an_envelope() -> None:
    frame = protobuf.watch_frame("ADDED", b"k8s\x00!")

    assert frame == b"\x00\x00\x00\x10" + b"\x0a\x05ADDED" + b"\x12\x07" + b"\x0a\x05k8s\x00!"


def test_recorded_bodies_have_the_recorded_length(shared_data: Path) -> None:
    """The recording contains the decoded bodies and their lengths."""
    recorded = re.compile(r"body \((\d+) bytes, decoded from protobuf\):\n  [<>] \S+, Kind=\w+ (\{.*\})\n")
    count = 0
    for page in sorted((shared_data / "kube-apiserver" / "traffic").glob("scheduler-protobuf-*.txt")):
        for length, body in recorded.findall(page.read_text(encoding="utf-8")):
            value = json.loads(body)
            group, _, version = value["apiVersion"].rpartition("/")
            if not TABLE.has_kind(group, version, value["kind"]):
                group = "meta.k8s.io"
            schema = TABLE.definition_of(group, version, value["kind"])

            enveloped = protobuf.wrap(value, schema)

            assert len(enveloped) == int(length), value["kind"]
            assert protobuf.decode_envelope(enveloped, schema) == value
            count += 1
    assert count > 50


# Compared with Go


class Original:
    """Kubernetes' own encoder, in a small Go program."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the object's protobuf, and the object decoded from it."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(msgspec.json.encode(value) + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the program."""
        self._process.communicate(timeout=10)


@pytest.fixture(scope="session")
def original() -> Iterator[Original]:
    """The Go program, built on first use."""
    source = GO_PROGRAM.read_text()
    wanted = BuildRecipe(
        "protobuf",
        "k8s.io/kubernetes",
        TABLE.kubernetes_version,
        "",
        main=source,
        go_mod=GoMod.KUBERNETES,
        virtual=False,
    )
    try:
        program = Original(ensure_built(wanted, cache_folder()))
    except RunFailed as problem:
        pytest.skip(f"needs Kubernetes from the Go module proxy: {problem}")
    yield program
    program.close()


@settings(parent=QUICK, max_examples=100)
@given(stored_objects())
def test_bytes_are_those_of_go(original: Original, drawn: tuple[Resource, dict[str, Any]]) -> None:
    resource, value = drawn

    answer = original.ask(value)

    assert "problem" not in answer, answer
    assert protobuf.wrap(value, resource.schema) == base64.b64decode(answer["protobuf"])
    assert value == canonical(answer["json"], resource.schema).object


@pytest.mark.parametrize("resource", STORED, ids=lambda resource: resource.group_resource)
def test_every_field_of_every_kind_is_written_as_go_writes_it(original: Original, resource: Resource) -> None:
    drawn = {"kind": resource.kind, "apiVersion": resource.api_version, **filled(resource.schema)}
    value = canonical(drawn, resource.schema).object

    answer = original.ask(value)

    assert protobuf.wrap(value, resource.schema) == base64.b64decode(answer["protobuf"])
    assert value == canonical(answer["json"], resource.schema).object
