"""Validation of a value by its schema, with kube-apiserver's error messages.

This follows kube-openapi/pkg/validation/validate step by step, including the count of passed checks: if a value must
match one of several schemas and matches none, the errors of the schema with most passed checks are reported.

On update, errors in unchanged values are tolerated (ratcheting:
apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go), so that a schema can become stricter than existing
objects.
"""

from __future__ import annotations

from typing import Any

from batkube.api.cel.values import hash_key
from batkube.api.custom.instances.ratcheting import NO_OLD_VALUE, is_unchanged, old_item_lookup, old_property
from batkube.api.custom.instances.scalar_validation import is_whole, validate_number, validate_string
from batkube.api.custom.schemas.structural import Json, StructuralSchema
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError, go_quote

NO_FIELD = "<nil>"
"""The path of the whole object in Go's error messages."""

Findings = list[tuple[str, FieldError]]
"""The errors, each with the message by which duplicates are removed."""


def validate_value(schema: StructuralSchema, value: Json, base: str = "", old: Json = NO_OLD_VALUE) -> list[FieldError]:
    """Validate `value` at the path `base`; `old` is its value before an update."""
    check = _ValueValidator(base)
    check.check(schema, value, "", old)
    # Several branches of the schema may report the same error; keep one.
    unique = dict(reversed(check.findings))
    return [error for text, error in check.findings if unique.pop(text, None) is not None]


def json_type(value: Json) -> str:
    """Return the JSON type of a value by its name in schemas."""
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
#: The formats implied by number types, for errors where a string with a format was expected.
_NUMBER_FORMATS = {"integer": "int64", "number": "float64"}


class _ValueValidator:
    """One validation: walks schema and value together, collects errors and counts passed checks."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.findings: Findings = []

    def check(self, schema: StructuralSchema, value: Json, path: str, old: Json) -> int:
        """Validate a property, an item or the whole value; return the number of passed checks."""
        start = len(self.findings)
        count = self._check_all(schema, value, path, old)
        if len(self.findings) > start and old is not NO_OLD_VALUE and is_unchanged(value, old, schema):
            del self.findings[start:]
        return count

    def _check_all(self, schema: StructuralSchema, value: Json, path: str, old: Json) -> int:
        start = len(self.findings)
        if schema.types or schema.format:
            self._check_type(schema, value, path)
        type_count = int(len(self.findings) == start)
        if value is None:
            self._check_enum(schema, value, path)
            return type_count
        # One for each kind of check, and one for the value itself.
        count = 4 + (1 + type_count if schema.types or schema.format else 0)
        if schema.any_of or schema.one_of or schema.all_of or schema.negated is not None:
            count += self._check_composition(schema, value, path, old)
        if isinstance(value, str):
            count += 1 + (schema.format_check is not None)
            self.findings += validate_string(schema, value, path, self._field(path))
        elif isinstance(value, dict):
            self._check_enum(schema, value, path)
            return count + 1 + self._check_object(schema, value, path, old)
        elif isinstance(value, list):
            count += 2 + self._check_list(schema, value, path, old)
        elif not isinstance(value, bool):
            count += 2
            self.findings += validate_number(schema, value, path, self._field(path))
        self._check_enum(schema, value, path)
        return count

    def _field(self, path: str) -> str:
        """Return the field name of an error at `path`."""
        name = path.removeprefix(".")
        if not name:
            return self.base or NO_FIELD
        return f"{self.base}.{name}" if self.base else name

    def _add(self, text: str, error: FieldError) -> None:
        self.findings.append((text, error))

    def _check_type(self, schema: StructuralSchema, value: Json, path: str) -> None:
        types, form = schema.types, schema.format
        actual = json_type(value)
        if actual == "null":
            if types and not schema.nullable:
                self._add_type_error(path, ",".join(types), "null")
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
                self._add_type_error(path, form, _NUMBER_FORMATS.get(actual, ""))
                return
            if "number" not in types and "integer" not in types:
                return
        self._add_type_error(path, ",".join(types), actual)

    def _add_type_error(self, path: str, expected: str, actual: str) -> None:
        text = f"{path} in body must be of type {expected}: {go_quote(actual)}"
        self._add(text, field_errors.type_invalid(self._field(path), actual, text))

    def _check_enum(self, schema: StructuralSchema, value: Json, path: str) -> None:
        if not schema.enum:
            return
        if value is not None and hash_key(value) in schema.enum_keys:
            return
        words = [word if isinstance(word, str) else field_errors.go_json(word) for word in schema.enum]
        text = f"{path} in body should be one of [{' '.join(words)}]"
        self._add(text, field_errors.not_supported_in_order(self._field(path), value, words))

    def _check_list(self, schema: StructuralSchema, value: list[Any], path: str, old: Json) -> int:
        count = 0
        items = schema.items
        if items is not None:
            past = old_item_lookup(old, schema)
            for index, item in enumerate(value):
                count += self.check(items, item, f"{path}[{index}]", past(item))
        self._check_size(len(value), schema.min_items, schema.max_items, "items", path)
        return count

    def _check_object(self, schema: StructuralSchema, value: dict[str, Any], path: str, old: Json) -> int:
        self._check_size(len(value), schema.min_properties, schema.max_properties, "properties", path)
        count = 0
        properties, additional = schema.properties, schema.additional
        if schema.additional_allowed is False:
            for key in value:
                if key not in properties:
                    text = f"{path}.{key} in body is a forbidden property"
                    self._add(text, field_errors.invalid(self._field(path), key, text))
        elif additional is not None:
            for key, item in value.items():
                if key not in properties:
                    count += self.check(additional, item, f"{path}.{key}", old_property(old, key))
        for name, part in properties.items():
            if name in value:
                below = f"{path}.{name}" if path else name
                count += self.check(part, value[name], below, old_property(old, name))
        for name in schema.required:
            if name not in value:
                below = f"{path}.{name}"
                self._add(f"{below} in body is required", field_errors.required(self._field(below)))
        return count

    def _check_size(self, size: int, minimum: int | None, maximum: int | None, parts: str, path: str) -> None:
        """Check the number of a value's parts: `items` of a list, `properties` of an object."""
        if minimum is not None and size < minimum:
            text = f"{path} in body should have at least {minimum} {parts}"
            self._add(text, field_errors.invalid(self._field(path), size, text))
        if maximum is not None and size > maximum:
            text = f"{path} in body should have at most {maximum} {parts}"
            self._add(text, field_errors.too_many(self._field(path), size, maximum))

    # Composed schemas

    def _check_composition(self, schema: StructuralSchema, value: Json, path: str, old: Json) -> int:
        count = 0
        if schema.any_of:
            count += self._check_any_of(schema, value, path, old)
        if schema.one_of:
            count += self._check_one_of(schema, value, path, old)
        if schema.all_of:
            count += self._check_all_of(schema, value, path, old)
        if schema.negated is not None and not self._try_schema(schema.negated, value, path, old)[1]:
            self._add_composition_error(f"{go_quote(path)} must not validate the schema (not)")
        return count

    def _try_schema(self, schema: StructuralSchema, value: Json, path: str, old: Json) -> tuple[int, Findings]:
        """Validate against one of several schemas, and return its errors without recording them."""
        kept, self.findings = self.findings, []
        count = self._check_all(schema, value, path, old)
        problems, self.findings = self.findings, kept
        return count, problems

    def _add_composition_error(self, text: str) -> None:
        self._add(text, field_errors.invalid(self.base or NO_FIELD, "", text))

    def _check_any_of(self, schema: StructuralSchema, value: Json, path: str, old: Json) -> int:
        best: tuple[int, Findings] | None = None
        for part in schema.any_of:
            tried = self._try_schema(part, value, path, old)
            if not tried[1]:
                return tried[0]
            if best is None or tried[0] > best[0]:
                best = tried
        self._add_composition_error(f"{go_quote(path)} must validate at least one schema (anyOf)")
        assert best is not None, "anyOf without schemas is not checked"
        self.findings += best[1]
        return best[0]

    def _check_one_of(self, schema: StructuralSchema, value: Json, path: str, old: Json) -> int:
        attempts = [self._try_schema(part, value, path, old) for part in schema.one_of]
        fitting = [count for count, problems in attempts if not problems]
        if len(fitting) == 1:
            return fitting[0]
        problem = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
        self._add_composition_error(f"{go_quote(path)} must validate one and only one schema (oneOf). {problem}")
        if fitting:
            return 0
        best = max(attempts, key=lambda tried: tried[0])
        self.findings += best[1]
        return best[0]

    def _check_all_of(self, schema: StructuralSchema, value: Json, path: str, old: Json) -> int:
        attempts = [self._try_schema(part, value, path, old) for part in schema.all_of]
        for _, problems in attempts:
            self.findings += problems
        failed = sum(1 for _, problems in attempts if problems)
        if failed:
            none = ". None validated" if failed == len(attempts) else ""
            self._add_composition_error(f"{go_quote(path)} must validate all the schemas (allOf){none}")
        return sum(count for count, _ in attempts)
