"""Emit objects as YAML, byte for byte as kube-apiserver does.

kube-apiserver converts JSON to YAML with go-yaml v2 (sigs.k8s.io/yaml, JSONToYAML), a port of libyaml. The emitter
chooses only the style of strings and the order of keys: a string that would be parsed as something else is
double-quoted, a string of several lines is a literal block, and digits within keys are compared as numbers.
"""

from __future__ import annotations

import datetime
import functools
import re
from decimal import Decimal
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from batkube.api.decoding.yaml_scalars import resolve_plain

_TEXT_TAG = "tag:yaml.org,2002:str"
_SEQUENCE_TAG = "tag:yaml.org,2002:seq"
_MAPPING_TAG = "tag:yaml.org,2002:map"
#: Whole floats below this are written without an exponent in JSON.
_WHOLE_NUMBER_LIMIT = 1e21
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)"
    r"(?:[Tt](\d\d?):(\d\d?):(\d\d?)(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)| (\d\d?):(\d\d?):(\d\d?)(?:\.\d+)?)?",
    re.ASCII,
)


class _Dumper(yaml.CSafeDumper):
    """Emits nodes in their own style, without tags."""

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:  # noqa: ANN401 - PyYAML's interface
        """Return the default tag of a node, which is not emitted."""
        return _TEXT_TAG if kind is ScalarNode else _SEQUENCE_TAG if kind is SequenceNode else _MAPPING_TAG


def to_yaml(value: Any) -> bytes:  # noqa: ANN401 - any JSON
    """Return JSON as YAML."""
    text: str = yaml.serialize(_to_node(value), Dumper=_Dumper, allow_unicode=True)
    # libyaml writes an explicit end of some documents; go-yaml never does.
    return text.removesuffix("...\n").encode()


def _to_node(value: Any) -> Node:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        return ScalarNode(_TEXT_TAG, value, style=_scalar_style(value))
    if isinstance(value, dict):
        pairs = [
            (_to_node(key), _to_node(value[key])) for key in sorted(value, key=functools.cmp_to_key(_compare_keys))
        ]
        return MappingNode(_MAPPING_TAG, pairs, flow_style=not pairs)
    if isinstance(value, list):
        return SequenceNode(_SEQUENCE_TAG, [_to_node(item) for item in value], flow_style=not value)
    if value is None or isinstance(value, bool):
        return ScalarNode(_TEXT_TAG, {None: "null", True: "true", False: "false"}[value])
    return ScalarNode(_TEXT_TAG, _float_text(value) if isinstance(value, float) else str(value))


def _scalar_style(text: str) -> str | None:
    if "\n" in text:
        return "|"
    means_text = isinstance(resolve_plain(text), str)
    return None if means_text and not _BASE_60.fullmatch(text) and not _is_timestamp(text) else '"'


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day, *clock = (int(part) if part else 0 for part in match.groups())
    hour, minute, second = clock[:3] if any(clock[:3]) else clock[3:]
    try:
        datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return False
    return True


def _float_text(number: float) -> str:
    """Format a float as Go's 'g' verb with the fewest digits; whole numbers are integers, as in JSON."""
    if number.is_integer() and abs(number) < _WHOLE_NUMBER_LIMIT:
        return str(int(number))
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int), "JSON has no infinities"
    text, point = "".join(map(str, digits)).rstrip("0"), len(digits) + exponent
    minus = "-" if sign else ""
    if -4 <= point - 1 < 6:
        return minus + _positional_text(text, point)
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{minus}{text[0]}{fraction}e{point - 1:+03d}"


def _positional_text(text: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + text
    return text[:point] + "." + text[point:] if point < len(text) else text.ljust(point, "0")


def _compare_keys(left: str, right: str) -> int:
    """Compare keys as go-yaml does (sorter.go): digits by their value, letters after other characters."""
    for position, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            continue
        if a.isalpha() or b.isalpha():
            if a.isalpha() and b.isalpha():
                return -1 if a < b else 1
            return -1 if b.isalpha() else 1
        return _compare_numbers(left, right, position)
    return len(left) - len(right)


def _compare_numbers(left: str, right: str, position: int) -> int:
    """Compare two keys that first differ at `position`, where neither has a letter."""
    start = 0
    if "0" in (left[position], right[position]):
        before = re.search(r"\d*\Z", left[:position], re.ASCII)
        start = 1 if before is not None and before[0].strip("0") else 0
    keys = []
    for text in (left, right):
        digits = re.match(r"\d*", text[position:], re.ASCII)
        number = digits[0] if digits is not None else ""
        keys.append((int(f"{start}{number}"), len(number), text[position]))
    return -1 if keys[0] < keys[1] else 1
