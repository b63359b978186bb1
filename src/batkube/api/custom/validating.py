"""Whether a value fits a schema, and if not why, in the words of the real server.

This follows kube-openapi/pkg/validation/validate step by step, down to the count of checks passed: where a value must
fit one of several schemas and fits none, the problems of the one that passed most checks are reported.

On update, what was wrong already and has not changed is let pass (ratcheting: apiextensions-apiserver/pkg/apiserver/
validation/ratcheting.go), so that a schema may become stricter than objects that exist.
"""

from __future__ import annotations

from typing import Any

from batkube.api.cel.values import identity
from batkube.api.custom.ratcheting import UNKNOWN, old_items, old_property, unchanged
from batkube.api.custom.structural import Json, Structural
from batkube.api.custom.value_rules import is_whole, number_problems, text_problems
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError, go_quote

NOWHERE = "<nil>"
"""How Go writes the path of the whole object."""

Findings = list[tuple[str, FieldError]]
"""Problems so far: each with the message by which it is told apart from others."""


def schema_errors(schema: Structural, value: Json, base: str = "", old: Json = UNKNOWN) -> list[FieldError]:
    """Return what is wrong with `value`, which lies at the path `base`; `old` is what it was before an update."""
    check = _Check(base)
    check.value(schema, value, "", old)
    # The same problem may be found on several ways; it is told once.
    unique = dict(reversed(check.findings))
    return [error for text, error in check.findings if unique.pop(text, None) is not None]


def json_type(value: Json) -> str:
    """Return the JSON type of a value, as schemas name it."""
    if isinstance(value, bool):
        return "boolean"
    for types, name in _TYPE_NAMES:
        if isinstance(value, types):
            return name
    return "null"


_TYPE_NAMES: tuple[tuple[type, str], ...] = (
    (str, "string"),
    (dict, "object"),
    (list, "array"),
    (int, "integer"),
    (float, "number"),
)
#: The formats that numbers have of themselves, told where a text with a format was expected.
_NATURAL_FORMATS = {"integer": "int64", "number": "float64"}


class _Check:
    """One validation: walks schema and value together, collects findings and counts checks passed."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.findings: Findings = []

    def value(self, schema: Structural, value: Json, path: str, old: Json) -> int:
        """Check a property, an item or the whole; returns how many checks passed."""
        start = len(self.findings)
        count = self._parts(schema, value, path, old)
        if len(self.findings) > start and old is not UNKNOWN and unchanged(value, old, schema):
            del self.findings[start:]
        return count

    def _parts(self, schema: Structural, value: Json, path: str, old: Json) -> int:
        start = len(self.findings)
        if schema.types or schema.format:
            self._type(schema, value, path)
        type_count = int(len(self.findings) == start)
        if value is None:
            self._enum(schema, value, path)
            return type_count
        # One for each kind of check made, and one for the value itself.
        count = 4 + (1 + type_count if schema.types or schema.format else 0)
        if schema.any_of or schema.one_of or schema.all_of or schema.negated is not None:
            count += self._composed(schema, value, path, old)
        if isinstance(value, str):
            count += 1 + (schema.format_check is not None)
            self.findings += text_problems(schema, value, path, self._at(path))
        elif isinstance(value, dict):
            self._enum(schema, value, path)
            return count + 1 + self._object(schema, value, path, old)
        elif isinstance(value, list):
            count += 2 + self._list(schema, value, path, old)
        elif not isinstance(value, bool):
            count += 2
            self.findings += number_problems(schema, value, path, self._at(path))
        self._enum(schema, value, path)
        return count

    def _at(self, path: str) -> str:
        """Return the field of an error at `path`."""
        name = path.removeprefix(".")
        if not name:
            return self.base or NOWHERE
        return f"{self.base}.{name}" if self.base else name

    def _add(self, text: str, error: FieldError) -> None:
        self.findings.append((text, error))

    def _type(self, schema: Structural, value: Json, path: str) -> None:
        types, form = schema.types, schema.format
        actual = json_type(value)
        if actual == "null":
            if types and not schema.nullable:
                self._wrong_type(path, ",".join(types), "null")
            return
        fits = (
            actual in types
            or (actual == "number" and "integer" in types and is_whole(value))
            or (actual == "integer" and "number" in types)
        )
        if fits:
            return
        if form:
            if actual not in ("string", "array"):
                self._wrong_type(path, form, _NATURAL_FORMATS.get(actual, ""))
                return
            if "number" not in types and "integer" not in types:
                return
        self._wrong_type(path, ",".join(types), actual)

    def _wrong_type(self, path: str, expected: str, actual: str) -> None:
        text = f"{path} in body must be of type {expected}: {go_quote(actual)}"
        self._add(text, field_errors.type_invalid(self._at(path), actual, text))

    def _enum(self, schema: Structural, value: Json, path: str) -> None:
        if not schema.enum:
            return
        if value is not None and identity(value) in schema.allowed:
            return
        words = [word if isinstance(word, str) else field_errors.go_json(word) for word in schema.enum]
        text = f"{path} in body should be one of [{' '.join(words)}]"
        self._add(text, field_errors.not_among(self._at(path), value, words))

    def _list(self, schema: Structural, value: list[Any], path: str, old: Json) -> int:
        count = 0
        items = schema.items
        if items is not None:
            past = old_items(old, schema)
            for index, item in enumerate(value):
                count += self.value(items, item, f"{path}[{index}]", past(item))
        size = len(value)
        if schema.min_items is not None and size < schema.min_items:
            text = f"{path} in body should have at least {schema.min_items} items"
            self._add(text, field_errors.invalid(self._at(path), size, text))
        if schema.max_items is not None and size > schema.max_items:
            text = f"{path} in body should have at most {schema.max_items} items"
            self._add(text, field_errors.too_many(self._at(path), size, schema.max_items))
        return count

    def _object(self, schema: Structural, value: dict[str, Any], path: str, old: Json) -> int:
        self._object_size(schema, value, path)
        count = 0
        properties, additional = schema.properties, schema.additional
        if schema.additional_allowed is False:
            for key in value:
                if key not in properties:
                    text = f"{path}.{key} in body is a forbidden property"
                    self._add(text, field_errors.invalid(self._at(path), key, text))
        elif additional is not None:
            for key, item in value.items():
                if key not in properties:
                    count += self.value(additional, item, f"{path}.{key}", old_property(old, key))
        for name, part in properties.items():
            if name in value:
                below = f"{path}.{name}" if path else name
                count += self.value(part, value[name], below, old_property(old, name))
        for name in schema.required:
            if name not in value:
                below = f"{path}.{name}"
                self._add(f"{below} in body is required", field_errors.required(self._at(below)))
        return count

    def _object_size(self, schema: Structural, value: dict[str, Any], path: str) -> None:
        size = len(value)
        if schema.min_properties is not None and size < schema.min_properties:
            text = f"{path} in body should have at least {schema.min_properties} properties"
            self._add(text, field_errors.invalid(self._at(path), size, text))
        if schema.max_properties is not None and size > schema.max_properties:
            text = f"{path} in body should have at most {schema.max_properties} properties"
            self._add(text, field_errors.too_many(self._at(path), size, schema.max_properties))

    # Composed schemas

    def _composed(self, schema: Structural, value: Json, path: str, old: Json) -> int:
        count = 0
        if schema.any_of:
            count += self._any_of(schema, value, path, old)
        if schema.one_of:
            count += self._one_of(schema, value, path, old)
        if schema.all_of:
            count += self._all_of(schema, value, path, old)
        if schema.negated is not None and not self._tried(schema.negated, value, path, old)[1]:
            self._composed_problem(f"{go_quote(path)} must not validate the schema (not)")
        return count

    def _tried(self, schema: Structural, value: Json, path: str, old: Json) -> tuple[int, Findings]:
        """Check against one of several schemas, aside."""
        kept, self.findings = self.findings, []
        count = self._parts(schema, value, path, old)
        problems, self.findings = self.findings, kept
        return count, problems

    def _composed_problem(self, text: str) -> None:
        self._add(text, field_errors.invalid(self.base or NOWHERE, "", text))

    def _any_of(self, schema: Structural, value: Json, path: str, old: Json) -> int:
        best: tuple[int, Findings] | None = None
        for part in schema.any_of:
            tried = self._tried(part, value, path, old)
            if not tried[1]:
                return tried[0]
            if best is None or tried[0] > best[0]:
                best = tried
        self._composed_problem(f"{go_quote(path)} must validate at least one schema (anyOf)")
        assert best is not None, "anyOf without schemas is not checked"
        self.findings += best[1]
        return best[0]

    def _one_of(self, schema: Structural, value: Json, path: str, old: Json) -> int:
        tries = [self._tried(part, value, path, old) for part in schema.one_of]
        fitting = [count for count, problems in tries if not problems]
        if len(fitting) == 1:
            return fitting[0]
        problem = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
        self._composed_problem(f"{go_quote(path)} must validate one and only one schema (oneOf). {problem}")
        if fitting:
            return 0
        best = max(tries, key=lambda tried: tried[0])
        self.findings += best[1]
        return best[0]

    def _all_of(self, schema: Structural, value: Json, path: str, old: Json) -> int:
        tries = [self._tried(part, value, path, old) for part in schema.all_of]
        for _, problems in tries:
            self.findings += problems
        failed = sum(1 for _, problems in tries if problems)
        if failed:
            none = ". None validated" if failed == len(tries) else ""
            self._composed_problem(f"{go_quote(path)} must validate all the schemas (allOf){none}")
        return sum(count for count, _ in tries)
