"""YAML as the server reads it: YAML 1.1 turned into JSON, with Go's words for what is wrong.

The real server converts YAML to JSON with go-yaml v2, a translation of libyaml, and sorts the keys. So `yes` and `y`
are true, `0x10` and `010` are numbers, dates are text, numbers are taken as keys by their text (sigs.k8s.io/yaml).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from batkube.cluster.go_text import go_quote
from batkube.cluster.json_syntax import ParseError

_PLAIN = "plain"
_TAGS = "tag:yaml.org,2002:"
#: The words that mean something else than themselves (go-yaml v2, resolve.go).
_WORDS: dict[str, bool | float | None] = {
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
#: As many as an int64 or uint64 holds; beyond, a number is a float.
_INTEGERS = range(-(2**63), 2**64)
#: Whole floats below this are written without an exponent, so they are integers in JSON.
_WHOLE_LIMIT = 1e21
_DEPTH_LIMIT = 300
_TOO_DEEP = "yaml: exceeded max depth"
#: A text with more digits is no integer of 64 bits in any base.
_DIGITS_LIMIT = 100
#: There may be so many more nodes than the text has bytes, because of aliases.
_ALIASED_NODES_LIMIT = 10_000


class _Loader(yaml.CSafeLoader):
    """Composes nodes with libyaml, and leaves it to us what plain scalars mean."""

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> str:  # noqa: ANN401 - PyYAML's interface
        """Return the tag of a node that has none."""
        if kind is ScalarNode:
            return _PLAIN if implicit[0] else _TAGS + "str"
        return _TAGS + ("seq" if kind is SequenceNode else "map")


def parse_yaml(data: bytes, _schema: object = None) -> tuple[Any, list[str]]:
    """Return the first document as JSON, and what strict decoding says of keys that are there twice.

    Raises ParseError. The schema is not needed, as YAML has been turned into JSON before it is decoded.
    """
    conversion = _Conversion(data)
    try:
        value = conversion.json(_first_document(data))
    except RecursionError:
        # Aliases may nest more deeply than the text does.
        raise ParseError(_TOO_DEEP) from None
    if not conversion.repeated:
        return value, []
    return value, ["yaml: unmarshal errors:\n  " + "\n  ".join(conversion.repeated)]


def strict_warnings(problems: list[str]) -> list[str]:
    """Return strict errors as the warnings that clients get: those of YAML line by line.

    Kubernetes: apiserver/pkg/endpoints/handlers/rest.go, parseYAMLWarnings.
    """
    return [line.strip() for text in problems for line in text.removeprefix("yaml: unmarshal errors:\n").split("\n")]


def _check_depth(loader: _Loader) -> None:
    """Refuse a first document that is nested too deeply: libyaml's composer would run out of stack, and kill us."""
    depth = 0
    while loader.check_event() and not loader.check_event(yaml.DocumentEndEvent):
        event = loader.get_event()
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH_LIMIT:
            raise ParseError(_TOO_DEEP)


def _first_document(data: bytes) -> Node | None:
    loader = None
    try:
        loader = _Loader(data)
        _check_depth(loader)
        loader.dispose()
        loader = _Loader(data)
        return loader.get_node() if loader.check_node() else None
    except yaml.composer.ComposerError as problem:
        raise ParseError(_composing_problem(data, problem)) from problem
    except yaml.MarkedYAMLError as problem:
        raise ParseError(_marked_problem(problem)) from problem
    except yaml.reader.ReaderError as problem:
        raise ParseError(f"yaml: {problem.reason}") from problem
    finally:
        if loader is not None:
            loader.dispose()


def _marked_problem(problem: yaml.MarkedYAMLError) -> str:
    """Return go-yaml's words; it counts lines from 0 in some errors, and leaves out line 0 (decode.go, fail)."""
    line = 0
    if problem.problem_mark is not None and problem.problem_mark.line:
        line = problem.problem_mark.line + isinstance(problem, yaml.scanner.ScannerError)
    elif problem.context_mark is not None:
        line = problem.context_mark.line
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{problem.problem}"


def _composing_problem(data: bytes, problem: yaml.composer.ComposerError) -> str:
    """Name the anchor, which libyaml does not."""
    if problem.problem_mark is None or "alias" not in str(problem.problem):
        return _marked_problem(problem)
    return f"yaml: unknown anchor '{_name_at(data, problem.problem_mark)}' referenced"


def _name_at(data: bytes, mark: yaml.Mark) -> str:
    """Return the name of the anchor or alias that stands at `mark`."""
    line = data.decode("utf-8", "replace").splitlines()[mark.line]
    name = re.match(r"[&*]?([0-9A-Za-z_-]*)", line[mark.column :])
    return name[1] if name else ""


class _Conversion:
    """Turns nodes into JSON."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        #: Complaints about keys that are there twice.
        self.repeated: list[str] = []
        #: The nodes around the one at work: an alias to one of them has no end.
        self._around: list[Node] = []
        self._count = 0

    def json(self, node: Node | None) -> Any:  # noqa: ANN401 - any JSON
        """Return the JSON of a node."""
        if node is None:
            return None
        self._count += 1
        if self._count > len(self._data) + _ALIASED_NODES_LIMIT:
            raise ParseError("yaml: document contains excessive aliasing")
        if isinstance(node, ScalarNode):
            return _json_number(_scalar(node))
        if node in self._around:
            raise ParseError(f"yaml: anchor '{_name_at(self._data, node.start_mark)}' value contains itself")
        self._around.append(node)
        if isinstance(node, SequenceNode):
            value: Any = [self.json(item) for item in node.value]
        else:
            value = dict(sorted(self._mapping(node).items()))
        self._around.pop()
        return value

    def _mapping(self, node: Node) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if (
                isinstance(key_node, ScalarNode)
                and key_node.tag in (_PLAIN, _TAGS + "merge")
                and key_node.value == "<<"
            ):
                self._merge(value_node, out)
                continue
            if not isinstance(key_node, ScalarNode):
                raise ParseError(f"yaml: invalid map key: {_go_syntax(self.json(key_node))}")
            key = _scalar(key_node)
            value = self.json(value_node)
            text = _key_text(key, value)
            if text in out:
                shown = go_quote(text) if isinstance(key, str) else text
                self.repeated.append(f"line {value_node.start_mark.line + 1}: key {shown} already set in map")
            out[text] = value
        return out

    def _merge(self, node: Node, out: dict[str, Any]) -> None:
        """Take over the keys of other mappings; of several, the earlier ones take precedence."""
        sources = list(reversed(node.value)) if isinstance(node, SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, MappingNode):
                raise ParseError("yaml: map merge requires map or sequence of maps as the value")
            out.update(self._mapping(source))


def _scalar(node: ScalarNode) -> Any:  # noqa: ANN401 - any JSON scalar
    text: str = node.value
    if node.tag == _PLAIN:
        return plain_meaning(text)
    kind = node.tag.removeprefix(_TAGS)
    if kind == "binary":
        try:
            return base64.b64decode(text, validate=True).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            raise ParseError("yaml: !!binary value contains invalid base64 data") from None
    if kind not in _CHECKED_TAGS:
        return text
    value = plain_meaning(text)
    found = next((name for name, python in _CHECKED_TAGS.items() if isinstance(value, python)), "str")
    if kind == "float" and found == "int":
        return float(value)
    if kind != found:
        raise ParseError(f"yaml: cannot decode !!{found} `{text}` as a !!{kind}")
    return value


#: Tags whose text must resolve to them, with the Python types they stand for; a bool is an int, so it comes first.
_CHECKED_TAGS = {"bool": bool, "int": int, "float": float, "null": type(None)}


def plain_meaning(text: str) -> Any:  # noqa: ANN401 - any JSON scalar
    """Return what a plain scalar means."""
    if text in _WORDS:
        return _WORDS[text]
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
    if _FLOAT.fullmatch(digits if text[0] != "." else text) and math.isfinite(float(digits)):
        return float(digits)
    return text


def _json_number(value: Any) -> Any:  # noqa: ANN401 - any JSON scalar
    """Return a float as JSON has it: whole ones without a fraction."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        raise ParseError(f"json: unsupported value: {shown}")
    return int(value) if value.is_integer() and abs(value) < _WHOLE_LIMIT else value


def _key_text(key: Any, value: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(key, str):
        return key
    if key is None:
        raise ParseError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {_go_syntax(value)}")
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key) if isinstance(key, int) else f"{key:.8g}"


def _go_syntax(value: Any) -> str:  # noqa: ANN401 - any JSON
    """Write a value as Go's %#v."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{go_quote(key)}:{_go_syntax(item)}" for key, item in value.items())
        return f"map[interface {{}}]interface {{}}{{{pairs}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(_go_syntax, value)) + "}"
    if isinstance(value, str):
        return go_quote(value)
    return {None: "interface {}(nil)", True: "true", False: "false"}.get(value) or str(value)
