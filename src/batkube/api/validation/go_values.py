"""Values in error messages as Go prints them: structs of kube-apiserver's internal types, and diffs between two.

In a message such as `Duplicate value: {"Name":"","Protocol":"TCP",…}`, the struct has no JSON tags, so all fields are
printed, by their Go names. The table `go_types.json` (derived by scripts/derive_go_types.py) lists the fields of a
struct. One row is `GoName apiName type`, with a `?` after the Go name for a field that Go omits when it is empty.
"""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

from batkube.api.validation.field_errors import GO_ESCAPES, Verbatim

_ZEROS: dict[str, Any] = {"string": "", "bool": False, "quantity": "0", "intstr": 0, "time": None}
_NUMBERS = frozenset({"int", "int32", "int64", "uint32", "float64"})
#: Fields of the pod spec in the API that the internal type has in its security context
#: (Convert_v1_PodSpec_To_core_PodSpec).
_MOVED_TO_SECURITY_CONTEXT = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


class _Row(NamedTuple):
    go_name: str
    optional: bool
    api_path: tuple[str, ...]
    type: str


@functools.cache
def _go_types() -> dict[str, str]:
    text = resources.files(__package__).joinpath("go_types.json").read_text(encoding="utf-8")
    table: dict[str, str] = json.loads(text)
    return table


@functools.cache
def _struct_rows(name: str) -> tuple[_Row, ...]:
    rows = []
    for line in _go_types()[name].split("; "):
        go_name, path, kind = line.split(" ", 2)
        rows.append(_Row(go_name.rstrip("?"), go_name.endswith("?"), tuple(path.split(".")), kind))
    return tuple(rows)


def go_struct(kind: str, value: object) -> Verbatim:
    """Format an API value as kube-apiserver quotes it: a struct of the Go type `kind`."""
    return Verbatim(json.dumps(_convert(kind, value), ensure_ascii=False, separators=(",", ":")).translate(GO_ESCAPES))


def go_difference(kind: str, old: object, new: object) -> str:
    """Return the unified diff of two values with context 3 (Kubernetes: apimachinery/pkg/util/diff)."""
    lines = difflib.unified_diff(_lines(kind, old), _lines(kind, new), n=3)
    return "".join(list(lines)[2:])  # without the two lines of file names


def _lines(kind: str, value: object) -> list[str]:
    text = json.dumps(_convert(kind, value), ensure_ascii=False, indent=1).translate(GO_ESCAPES)
    return [f"{line}\n" for line in text.split("\n")]


def _convert(kind: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return `value` with the names, the order and the zero values of the Go type."""
    if kind.startswith("*"):
        return None if value is None else _convert(kind[1:], value)
    if kind.startswith("[]"):
        return None if value is None else [_convert(kind[2:], item) for item in value]
    if kind.startswith("map "):
        return None if value is None else {key: _convert(kind[4:], value[key]) for key in sorted(value)}
    if kind in ("any", "bytes"):
        return value
    if value is None and kind in _ZEROS:
        return _ZEROS[kind]
    if kind in _NUMBERS:
        return value or 0
    return value if kind in _ZEROS else _convert_struct(kind, value or {})


def _convert_struct(kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "core.PodSpec":
        value = _with_moved_fields(value)
    out: dict[str, Any] = {}
    for row in _struct_rows(kind):
        part_value: Any = value
        for part in row.api_path:
            part_value = part_value.get(part) if part_value else None
        inside = _convert(row.type, part_value)
        left_out = row.optional and (inside is None if row.type.startswith("*") else not inside)
        if not left_out:
            out[row.go_name] = inside
    return out


def _with_moved_fields(spec: Mapping[str, Any]) -> dict[str, Any]:
    moved = {name: spec[name] for name in _MOVED_TO_SECURITY_CONTEXT if name in spec}
    return {**spec, "securityContext": {**spec.get("securityContext", {}), **moved}}
