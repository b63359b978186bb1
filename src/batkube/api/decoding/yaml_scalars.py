"""Resolve YAML 1.1 scalars as go-yaml v2 does (resolve.go), and convert them to JSON.

For example, `yes` and `y` are true, `0x10` and `010` are numbers, and dates are strings. A number as a key becomes a
string (sigs.k8s.io/yaml, convertToJSONableObject).
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from typing import Any

from batkube.api.decoding.json_syntax import ParseError
from batkube.kernel.numbers import parse_float

TAG_PREFIX = "tag:yaml.org,2002:"
#: Plain scalars with a special value (go-yaml v2, resolve.go).
_NAMED_VALUES: dict[str, bool | float | None] = {
    **{word: True for text in ("y", "yes", "true", "on") for word in (text, text.capitalize(), text.upper())},
    **{word: False for text in ("n", "no", "false", "off") for word in (text, text.capitalize(), text.upper())},
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
#: Go's strconv.ParseInt with base 0.
_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
#: The range of int64 and uint64 together; numbers beyond it are floats.
_INTEGERS = range(-(2**63), 2**64)
#: Whole floats below this are written without an exponent, and are therefore integers in JSON.
_WHOLE_NUMBER_LIMIT = 1e21
#: A text with more digits is not a 64-bit integer in any base.
_DIGITS_LIMIT = 100
#: Tags that the text must resolve to, with their Python types. `bool` comes first, since it is a subclass of int.
_CHECKED_TAGS = {"bool": bool, "int": int, "float": float, "null": type(None)}


def resolve_tagged(text: str, tag: str) -> Any:  # noqa: ANN401 - any JSON scalar
    """Return the value of a scalar with an explicit tag; raises ParseError if its text does not match the tag."""
    kind = tag.removeprefix(TAG_PREFIX)
    if kind == "binary":
        try:
            return base64.b64decode(text, validate=True).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            raise ParseError("yaml: !!binary value contains invalid base64 data") from None
    if kind not in _CHECKED_TAGS:
        return text
    value = resolve_plain(text)
    actual = next((name for name, python in _CHECKED_TAGS.items() if isinstance(value, python)), "str")
    if kind == "float" and actual == "int":
        return float(value)
    if kind != actual:
        raise ParseError(f"yaml: cannot decode !!{actual} `{text}` as a !!{kind}")
    return value


def resolve_plain(text: str) -> Any:  # noqa: ANN401 - any JSON scalar
    """Return the value of a plain scalar."""
    if text in _NAMED_VALUES:
        return _NAMED_VALUES[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    integer = _INTEGER.fullmatch(digits)
    if integer is not None and len(digits) < _DIGITS_LIMIT:
        sign, hexadecimal, binary, octal, decimal = integer.groups()
        number = int(
            hexadecimal or binary or octal or decimal, 16 if hexadecimal else 2 if binary else 8 if octal else 10
        )
        number = -number if sign == "-" else number
        if number in _INTEGERS:
            return number
    if _FLOAT.fullmatch(digits if text[0] != "." else text) and math.isfinite(real := parse_float(digits)):
        return real
    return text


def to_json_number(value: Any) -> Any:  # noqa: ANN401 - any JSON scalar
    """Return a number as in JSON: a whole float becomes an integer. Raises ParseError for infinities and NaN."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        go_text = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        raise ParseError(f"json: unsupported value: {go_text}")
    return int(value) if value.is_integer() and abs(value) < _WHOLE_NUMBER_LIMIT else value


def key_text(key: Any) -> str:  # noqa: ANN401 - any JSON
    """Return a key as a string; raises ParseError unless it is a scalar and not null."""
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, dict | list):
        raise ParseError(f"yaml: invalid map key: {json.dumps(key)}")
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key) if isinstance(key, int) else f"{key:.8g}"
