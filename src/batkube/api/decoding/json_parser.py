"""JSON as the server reads it: fast when there is nothing to say, exact in words when there is.

A document usually has no field twice. Whether it has can be told cheaply: the parsed value is written again, and both
texts must have as many keys. Only when they differ is the document read in a way that keeps every occurrence.
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
from batkube.kernel.text.numbers import parse_float


def _plain_number(text: str) -> float:
    """Return a number that is only a number."""
    number = parse_float(text)
    if not math.isfinite(number):
        raise ParseError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number


def _number_with_text(text: str) -> float:
    """Return a number whose text may matter."""
    number = parse_float(text)
    return number if repr(number) == text else NumberWithText(text)


_plain_decoder = msgspec.json.Decoder(float_hook=_plain_number)
_number_text_decoder = msgspec.json.Decoder(float_hook=_number_with_text)
_encode = msgspec.json.Encoder(enc_hook=float).encode
#: An integer with more digits is beyond every type, and costly to read.
_DIGITS_LIMIT = 1000
#: An escape in a string: a pair of surrogates, one alone, or any other.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")


def parse_json(data: bytes, schema: Schema | None = None) -> tuple[Any, list[str]]:
    """Return the value, and what strict decoding says of fields that are there twice; raises ParseError.

    With a schema, the value is meant for `decode`: numbers keep their text where it matters, and fields that are there
    twice are merged as Go merges them into its types; then fields that the schema does not know are dropped and
    reported here, too, in the order of the document. Without one, the last of several wins.
    """
    try:
        value = _plain_decoder.decode(data) if schema is None else _number_text_decoder.decode(data)
    except (ValueError, RecursionError):
        # Not only what is malformed: odd encodings, deep nesting and numbers of thousands of digits come here, too.
        check_syntax(data)
        return _parse_with_duplicates(data, schema)
    if _may_have_duplicate_keys(data, value):
        return _parse_with_duplicates(data, schema)
    return value, []


def _may_have_duplicate_keys(data: bytes, value: Any) -> bool:  # noqa: ANN401 - any JSON
    # What stands between a key and its colon would hide the key from the count.
    if b" :" in data or b"\t:" in data or b"\n:" in data or b"\r:" in data or b"\\u0022" in data:
        return True
    return data.count(b'":') != _encode(value).count(b'":')


def _parse_with_duplicates(data: bytes, schema: Schema | None) -> tuple[Any, list[str]]:
    """Read with every occurrence of every key; odd encodings become U+FFFD, as in Go."""
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
