"""Mutates requests, for the fuzz tests.

Recorded cases are good seeds: much code of the server runs before it rejects a mutated one.
"""

from __future__ import annotations

import json
import random
from typing import Any

from conformance.placeholders import Json

#: Unexpected values for a field: of another type, extreme, empty, nested, or valid only in other fields.
ODD_VALUES: tuple[Json, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    -(2**70),
    1.5,
    1e308,
    "",
    " ",
    "\0",
    "é\u2028\U0001f600",
    "x" * 300,
    "2026-13-45T99:99:99Z",
    "1e99999999999",
    "1Ei",
    "-0.000000001n",
    "../..",
    "${x}",
    [],
    [None],
    [[[[]]]],
    [{}, {}],
    {},
    {"": ""},
    {"$patch": "delete"},
    {"$patch": 5},
    {"a": {"b": {"c": [1, "2", None]}}},
)
_ODD_TEXTS = ("", "\0", "%", "%zz", "/", "//", "..", "é", "a b", "-1", "true", "x" * 2000, "0", "[]", "1e9", "\r\nX: y")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")
_HEADERS = ("accept", "content-type", "user-agent", "authorization", "impersonate-user", "accept-encoding")
_MEDIA = ("application/json", "application/yaml", "application/merge-patch+json", "application/json-patch+json")


def worse_value(value: Json, chance: random.Random) -> Json:
    """Return `value` with one change somewhere in it."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        if chance.random() < 0.1:
            return {**value, chance.choice(_ODD_TEXTS): chance.choice(ODD_VALUES)}
        return {**value, key: worse_value(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        if chance.random() < 0.1:
            return [*value, *value]
        return [*value[:place], worse_value(value[place], chance), *value[place + 1 :]]
    return chance.choice(ODD_VALUES)


def worse_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return `data` with bytes lost, changed or added."""
    place = chance.randrange(len(data) + 1)
    junk = chance.randbytes(chance.randrange(1, 8))
    return chance.choice((data[:place], data[:place] + junk + data[place:], junk + data[place:], data + data[place:]))


def body_of(request: dict[str, Json]) -> bytes:
    """Return the bytes of a request's body."""
    body = request.get("body")
    if body is None:
        return b""
    return (body if isinstance(body, str) else json.dumps(body)).encode("utf-8", "surrogatepass")


def worse_request(request: dict[str, Json], chance: random.Random) -> dict[str, Any]:
    """Return `request` with one thing wrong, or two."""
    worse: dict[str, Any] = {**request, "headers": dict(request.get("headers") or {})}
    for _ in range(chance.choice((1, 1, 2))):
        kind = chance.random()
        if kind < 0.6 and request.get("body") is not None:
            worse["body"] = worse_value(worse["body"], chance)
        elif kind < 0.7:
            worse["query"] = {**(worse.get("query") or {}), _odd_parameter(chance): chance.choice(_ODD_TEXTS)}
        elif kind < 0.8:
            segments = worse["path"].split("/")
            segments[chance.randrange(len(segments))] = chance.choice(_ODD_TEXTS)
            worse["path"] = "/".join(segments)
        elif kind < 0.9:
            worse["headers"][chance.choice(_HEADERS)] = chance.choice((*_ODD_TEXTS, *_MEDIA))
        else:
            worse["method"] = chance.choice(_METHODS)
    return worse


def _odd_parameter(chance: random.Random) -> str:
    known = ("watch", "limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector")
    written = (
        "dryRun",
        "fieldManager",
        "fieldValidation",
        "force",
        "gracePeriodSeconds",
        "propagationPolicy",
        "pretty",
    )
    return chance.choice((*known, *written, "timeoutSeconds", "sendInitialEvents", "unknown"))
