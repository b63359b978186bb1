"""Resolve duplicate fields in JSON documents as Go does, and report them as strict decoding does.

Go decodes the second occurrence into the value of the first one, so structs and maps are merged, and other values are
replaced (sigs.k8s.io/json, decode.go).
"""

from __future__ import annotations

from typing import Any

from batkube.api.decoding.state import STRICT_ERRORS_LIMIT, field_path_text
from batkube.cluster.schemas import Schema, Shape
from batkube.text.go_format import go_quote

Path = list[str | int]


class KeyValuePairs(list[tuple[str, Any]]):
    """A JSON object with all occurrences of its keys, in order."""


def resolve_duplicates(value: Any, schema: Schema | None) -> tuple[Any, list[str]]:  # noqa: ANN401 - any JSON
    """Return `value` with a dict for each `KeyValuePairs`, and the strict errors in the order of the document."""
    resolver = _DuplicateResolver()
    plain = resolver.value(value, schema, [])
    return plain, list(resolver.problems)


class _DuplicateResolver:
    """Resolves duplicates, and collects distinct strict errors."""

    def __init__(self) -> None:
        self.problems: dict[str, None] = {}

    def value(self, value: Any, schema: Schema | None, path: Path) -> Any:  # noqa: ANN401 - any JSON
        """Return the value at `path` as plain JSON."""
        if isinstance(value, KeyValuePairs):
            if schema is not None and schema.shape is Shape.ANY:
                return _plain_json(value)
            if schema is not None and schema.shape is Shape.STRUCT:
                return self._struct(value, schema, path)
            return self._map(value, schema and schema.items, path)
        if isinstance(value, list):
            items = schema and schema.items
            return [self.value(item, items, [*path, index]) for index, item in enumerate(value)]
        return value

    def _struct(self, pairs: KeyValuePairs, schema: Schema, path: Path) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in pairs:
            field = schema.fields.get(key)
            if field is None:
                self._report("unknown field", path, key)
                continue
            if key in out:
                self._report("duplicate field", path, key)
            new = self.value(item, field.schema, [*path, key])
            out[key] = _merge(out[key], new, field.schema) if key in out else new
        return out

    def _map(self, pairs: KeyValuePairs, items: Schema | None, path: Path) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, item in pairs:
            if key in out:
                self._report("duplicate field", path, key)
            out[key] = self.value(item, items, [*path, key])
        return out

    def _report(self, problem: str, path: Path, key: str) -> None:
        if len(self.problems) < STRICT_ERRORS_LIMIT:
            self.problems[f"{problem} {go_quote(field_path_text(path, key))}"] = None


def _plain_json(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, KeyValuePairs):
        return {key: _plain_json(item) for key, item in value}
    return [_plain_json(item) for item in value] if isinstance(value, list) else value


def _merge(old: Any, new: Any, schema: Schema) -> Any:  # noqa: ANN401 - any JSON
    """Return the value of a field that occurs twice."""
    if not isinstance(old, dict) or not isinstance(new, dict) or schema.shape not in (Shape.STRUCT, Shape.MAP):
        return new
    # In a map, a later value replaces an earlier one.
    types = {key: field.schema for key, field in schema.fields.items()} if schema.shape is Shape.STRUCT else {}
    return {**old, **{key: _merge(old.get(key), new[key], types[key]) if key in types else new[key] for key in new}}
