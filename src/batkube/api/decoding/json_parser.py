"""Parse JSON with Go's error messages and detection of duplicate fields.

The fast path is msgspec. A slower parser handles malformed documents and those with duplicate keys, which are rare. To
detect duplicates cheaply, the parsed value is encoded again and the numbers of keys in both texts are compared.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from batkube.api.decoding.json_duplicate_fields import KeyValuePairs, resolve_duplicates
from batkube.api.decoding.json_syntax import ParseError, check_syntax
from batkube.api.decoding.state import NumberWithText
from batkube.cluster.schemas import Schema
from batkube.kernel.numbers import parse_float


def _plain_number(text: str) -> float:
    """Return a number without its text; raises ParseError if it is out of range."""
    number = parse_float(text)
    if not math.isfinite(number):
        raise ParseError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number


def _number_with_text(text: str) -> float:
    """Return a number together with its text, if the text is unusual."""
    number = parse_float(text)
    return number if repr(number) == text else NumberWithText(text)


_plain_decoder = msgspec.json.Decoder(float_hook=_plain_number)
_number_text_decoder = msgspec.json.Decoder(float_hook=_number_with_text)
_encode = msgspec.json.Encoder(enc_hook=float).encode
#: An integer with more digits exceeds all types, and is slow to parse.
_DIGITS_LIMIT = 1000
#: An escape in a string: a surrogate pair, a lone surrogate (group 1), or any other.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")


def parse_json(data: bytes, schema: Schema | None = None) -> tuple[Any, list[str]]:
    """Return the value, and the strict errors about duplicate fields; raises ParseError.

    With a schema, the value is prepared for `decode`: numbers keep unusual texts, and duplicate fields are merged as in
    Go's types; if there are any, unknown fields are also dropped and reported here, in the order of the document.
    Without a schema, the last occurrence wins.
    """
    try:
        value = _plain_decoder.decode(data) if schema is None else _number_text_decoder.decode(data)
    except (ValueError, RecursionError):
        # Malformed, or valid for Go but not for msgspec: invalid UTF-8, deep nesting, very long numbers.
        check_syntax(data)
        return _parse_with_duplicates(data, schema)
    if _may_have_duplicate_keys(data, value):
        return _parse_with_duplicates(data, schema)
    return value, []


def _may_have_duplicate_keys(data: bytes, value: Any) -> bool:  # noqa: ANN401 - any JSON
    # Whitespace between a key and its colon would hide the key from the count.
    if b" :" in data or b"\t:" in data or b"\n:" in data or b"\r:" in data or b"\\u0022" in data:
        return True
    return data.count(b'":') != _encode(value).count(b'":')


def _parse_with_duplicates(data: bytes, schema: Schema | None) -> tuple[Any, list[str]]:
    """Parse with all occurrences of keys; invalid UTF-8 and lone surrogates become U+FFFD, as in Go."""
    text = data.decode("utf-8", "replace")
    text = _ESCAPE.sub(lambda escape: "\\ufffd" if escape[1] else escape[0], text)
    number = _plain_number if schema is None else _number_with_text
    try:
        pairs = json.loads(
            text,
            object_pairs_hook=KeyValuePairs,
            parse_float=number,
            parse_int=lambda digits: int(digits) if len(digits) < _DIGITS_LIMIT else number(digits),
        )
        return resolve_duplicates(pairs, schema)
    except RecursionError:
        raise ParseError("exceeded max depth") from None
