"""The version 2 document in protobuf equals the one in JSON; tests/clients checks that kubectl reads it."""

from __future__ import annotations

from typing import Any

import msgspec

from batkube.api.openapi.protobuf import to_protobuf
from batkube.api.wire.values import fields


def parsed(data: bytes) -> dict[int, list[Any]]:
    """Return the fields of a message by number."""
    found: dict[int, list[Any]] = {}
    for number, value in fields(data, 0, len(data)):
        found.setdefault(number, []).append(value)
    return found


def named(data: bytes) -> dict[str, dict[int, list[Any]]]:
    """Return the values of a message that is a map of names to values."""
    pairs = [parsed(pair) for values in parsed(data).values() for pair in values]
    return {pair[1][0].decode(): parsed(pair[2][0]) for pair in pairs}


def test_every_definition_is_there_with_its_fields() -> None:
    definition = {
        "type": "object",
        "description": "A queue.",
        "required": ["slots"],
        "properties": {
            "slots": {"type": "integer"},
            "tags": {"type": "array", "items": {"$ref": "#/x"}},
        },
        "x-kubernetes-group-version-kind": [{"kind": "Queue"}],
    }

    document = parsed(to_protobuf({"swagger": "2.0", "definitions": {"a.Queue": definition}}))

    assert document[1] == [b"2.0"]
    queue = named(document[9][0])["a.Queue"]
    assert (queue[4], queue[19]) == ([b"A queue."], [b"slots"])
    properties = named(queue[25][0])
    assert list(properties) == ["slots", "tags"]
    assert parsed(properties["slots"][22][0]) == {1: [b"integer"]}
    assert parsed(parsed(properties["tags"][23][0])[1][0]) == {1: [b"#/x"]}
    extension = parsed(queue[31][0])
    assert extension[1] == [b"x-kubernetes-group-version-kind"]
    assert msgspec.json.decode(parsed(extension[2][0])[2][0]) == [{"kind": "Queue"}]


def test_a_path_contains_the_parameters_of_its_methods() -> None:
    parameters = [
        {"name": "body", "in": "body", "required": True, "schema": {"type": "object"}},
        {"name": "dryRun", "in": "query", "type": "string"},
        {"name": "name", "in": "path", "required": True, "type": "string"},
    ]
    operation = {"operationId": "patchIt", "consumes": ["a/b"], "parameters": parameters}

    document = parsed(to_protobuf({"paths": {"/it": {"patch": operation}}}))

    patch = parsed(named(document[8][0])["/it"][8][0])
    assert (patch[5], patch[7]) == ([b"patchIt"], [b"a/b"])
    body, query, path = (parsed(parsed(one)[1][0]) for one in patch[8])
    assert parsed(body[1][0])[2] == [b"body"]
    assert parsed(parsed(query[2][0])[3][0])[4] == [b"dryRun"]
    assert parsed(parsed(path[2][0])[4][0])[4] == [b"name"]
