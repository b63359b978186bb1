"""Objects with defaults, changes of them, and the errors of updates."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from batkube.api.decoding.objects import decode
from batkube.api.groups.scheme import validation
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.cluster.kinds import KindTable, Resource

TABLE = KindTable.builtin()
ANSWERS = Path(__file__).parent / "scheme" / "validation_answers.json"
#: Valid objects of every kind, by kind and name.
OBJECTS = json.loads(ANSWERS.read_text(encoding="utf-8"))["objects"]


def resource_of(value: dict[str, Any]) -> Resource:
    group, _, version = value["apiVersion"].rpartition("/")
    match = TABLE.of_kind(group, version, value["kind"])
    assert match is not None
    return match


def filled(body: dict[str, Any]) -> dict[str, Any]:
    resource = resource_of(body)
    value: dict[str, Any] = decode(copy.deepcopy(body), resource.schema).object
    apply_defaults(resource, value)
    value["metadata"].setdefault("uid", "u")
    if resource.namespaced:
        value["metadata"].setdefault("namespace", "default")
    return value


def pod(**spec: object) -> dict[str, Any]:
    body = {"containers": [{"name": "c", "image": "busybox"}], **spec}
    return filled({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": body})


def changes(new: dict[str, Any], old: dict[str, Any], subresource: str = "") -> list[tuple[str, str]]:
    errors = validation.validate_update(resource_of(old), new, old, subresource)
    return [(error.field, error.message) for error in errors]


def changed(old: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    new = copy.deepcopy(old)
    place: Any = new
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step)] if step.isdecimal() else place.setdefault(step, {})
    place[last] = value
    return new
