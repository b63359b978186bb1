"""Validation of strings and numbers: length, pattern, format, bounds, multipleOf."""

from __future__ import annotations

from batkube.api.custom.schemas.structural import StructuralSchema
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError, go_quote
from batkube.text.go_format import go_value

_LARGEST_JSON_INTEGER = 2**53 - 1

Findings = list[tuple[str, FieldError]]


def validate_string(schema: StructuralSchema, value: str, path: str, field: str) -> Findings:
    """Return the first violation of length or pattern, and a violation of the format."""
    problems = _check_length_and_pattern(schema, value, path, field)
    if schema.format_check is not None and not schema.format_check(value):
        text = f"{path} in body must be of type {schema.format}: {go_quote(value)}"
        problems.append((text, field_errors.type_invalid(field, value, text)))
    return problems


def _check_length_and_pattern(schema: StructuralSchema, value: str, path: str, field: str) -> Findings:
    # Lengths are counted in characters, although one of the messages says bytes.
    if schema.max_length is not None and len(value) > schema.max_length:
        text = f"{path} in body should be at most {schema.max_length} chars long"
        return [(text, field_errors.too_long(field, schema.max_length))]
    if schema.min_length is not None and len(value) < schema.min_length:
        text = f"{path} in body should be at least {schema.min_length} chars long"
        return [(text, field_errors.invalid(field, value, text))]
    if schema.pattern_check is not None and schema.pattern_check.search(value) is None:
        text = f"{path} in body should match '{schema.pattern}'"
        return [(text, field_errors.invalid(field, value, text))]
    return []


def validate_number(schema: StructuralSchema, value: int | float, path: str, field: str) -> Findings:
    """Return violations of multipleOf and the bounds; for integers, kube-apiserver truncates the bounds."""
    problems: Findings = []
    if schema.multiple_of is not None:
        problems += _check_multiple(value, schema.multiple_of, path, field)
    if schema.minimum is not None:
        limit = int(schema.minimum) if isinstance(value, int) else schema.minimum
        if value < limit or (schema.exclusive_minimum and value == limit):
            relation = "greater than" if schema.exclusive_minimum else "greater than or equal to"
            text = f"{path} in body should be {relation} {go_value(limit)}"
            problems.append((text, field_errors.invalid(field, value, text)))
    if schema.maximum is not None:
        limit = int(schema.maximum) if isinstance(value, int) else schema.maximum
        if value > limit or (schema.exclusive_maximum and value == limit):
            relation = "less than" if schema.exclusive_maximum else "less than or equal to"
            text = f"{path} in body should be {relation} {go_value(limit)}"
            problems.append((text, field_errors.invalid(field, value, text)))
    return problems


def _check_multiple(value: int | float, factor: int | float, path: str, field: str) -> Findings:
    if isinstance(value, int):
        factor = int(factor)
    if factor <= 0:
        text = f"factor MultipleOf declared for {path} must be positive: {go_value(factor)}"
        return [(text, field_errors.invalid(field, factor, text))]
    if isinstance(value, int):
        fits = value % factor == 0
    else:
        quotient = value / factor if factor >= 1 else 1 / factor * value
        fits = is_whole(quotient)
    text = f"{path} in body should be a multiple of {go_value(factor)}"
    return [] if fits else [(text, field_errors.invalid(field, value, text))]


def is_whole(number: float) -> bool:
    """Return whether a float is an integer within the precision of JSON (go-openapi/swag)."""
    if not -_LARGEST_JSON_INTEGER <= number <= _LARGEST_JSON_INTEGER:
        return False
    nearest = float(int(number))
    return number == nearest or (nearest != 0 and abs(number - nearest) / (abs(number) + abs(nearest)) < 1e-9)
