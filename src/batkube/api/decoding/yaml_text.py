"""YAML as the server reads it: YAML 1.1 turned into JSON, with Go's words for what is wrong.

The real server converts YAML to JSON with go-yaml v2, a translation of libyaml, and sorts the keys
(sigs.k8s.io/yaml). Here libyaml's events become JSON in one pass, without a stack of calls that deep nesting could
exhaust. An alias stands for a copy of what its anchor holds; so that a few hundred bytes cannot stand for years of
work, copies are counted before they are made, and refused by go-yaml's own measure (decode.go, allowedAliasRatio).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from batkube.api.decoding.json_syntax import ParseError
from batkube.api.decoding.yaml_scalars import TAGS, go_syntax, json_number, key_text, plain_meaning, tagged_meaning
from batkube.kernel.go_text import go_quote

#: Deeper nesting is refused; libyaml gets slower with every level (go-yaml stops at 10,000 levels).
_DEPTH_LIMIT = 300
_TOO_DEEP = "yaml: exceeded max depth"
#: Until so many nodes, 99 in 100 may come from aliases; from there on fewer, down to one in ten of `_MANY_NODES`.
_FEW_NODES, _MANY_NODES = 400_000, 4_000_000
#: libyaml compares every directive with all before it.
_TAG_DIRECTIVES_LIMIT = 1000
_STARTS = frozenset((yaml.MappingStartEvent, yaml.SequenceStartEvent))
_COLLECTION_ENDS = frozenset((yaml.MappingEndEvent, yaml.SequenceEndEvent))
_ENDS = frozenset((yaml.DocumentEndEvent, yaml.StreamEndEvent))
_MERGE = "<<"
_WANTS_MAPS = "yaml: map merge requires map or sequence of maps as the value"


def parse_yaml(data: bytes, _schema: object = None) -> tuple[Any, list[str]]:
    """Return the first document as JSON, and what strict decoding says of keys that are there twice.

    Raises ParseError. The schema is not needed, as YAML has been turned into JSON before it is decoded.
    """
    building = _Building()
    _walk_first_document(data, building)
    if building.error is not None:
        raise building.error
    if not building.repeated:
        return building.value, []
    return building.value, ["yaml: unmarshal errors:\n  " + "\n  ".join(building.repeated)]


def strict_warnings(problems: list[str]) -> list[str]:
    """Return strict errors as the warnings that clients get: those of YAML line by line.

    Kubernetes: apiserver/pkg/endpoints/handlers/rest.go, parseYAMLWarnings.
    """
    return [line.strip() for text in problems for line in text.removeprefix("yaml: unmarshal errors:\n").split("\n")]


def _walk_first_document(data: bytes, building: _Building) -> None:
    """Hand over the events of the first document one by one; raises ParseError."""
    if data.startswith(b"%") and data.count(b"\n%TAG") > _TAG_DIRECTIVES_LIMIT:
        raise ParseError("yaml: too many %TAG directives")
    loader, depth = None, 0
    try:
        loader = yaml.CSafeLoader(data)
        while (kind := type(event := loader.get_event())) not in _ENDS:
            if kind in _STARTS:
                depth += 1
                if depth > _DEPTH_LIMIT:
                    raise ParseError(_TOO_DEEP)
            building.take(kind, event)
            if kind in _COLLECTION_ENDS:
                depth -= 1
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


class _Node(NamedTuple):
    """What an anchor holds: its JSON, how many nodes and levels it has, and which keys in it are there twice."""

    value: Any
    nodes: int
    depth: int
    repeated: list[str]


class _Open:
    """A collection that is not complete yet, and where it began."""

    def __init__(self, anchor: str | None, line: int, count: int, repeated: int) -> None:
        self.anchor = anchor
        self.line = line
        self.count = count
        self.repeated = repeated
        self.depth = 1

    def add(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        """Take the next node in; `line` is where it begins."""
        raise NotImplementedError

    def value(self) -> Any:  # noqa: ANN401 - any JSON
        """Return the JSON, now that all is there."""
        raise NotImplementedError


class _Sequence(_Open):
    def __init__(self, anchor: str | None, line: int, count: int, repeated: int) -> None:
        super().__init__(anchor, line, count, repeated)
        self.items: list[Any] = []

    def add(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        self.items.append(json_number(value))

    def value(self) -> Any:  # noqa: ANN401 - any JSON
        return self.items


class _Sources(_Sequence):
    """The mappings of `<<: [*a, *b]`; the earlier ones take precedence."""

    def value(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for source in reversed(self.items):
            if not isinstance(source, dict):
                raise ParseError(_WANTS_MAPS)
            merged.update(source)
        return merged


class _Mapping(_Open):
    def __init__(self, anchor: str | None, line: int, count: int, repeated: int, complaints: list[str]) -> None:
        super().__init__(anchor, line, count, repeated)
        self._complaints = complaints
        self._fields: dict[str, Any] = {}
        self._key: Any = None
        #: Whether the next node is a key, and not the value of one; and whether that key is `<<`.
        self.wants_key = True
        self.merges = False

    def merge(self) -> None:
        """Take the key `<<` in."""
        self.wants_key, self.merges = False, True

    def add(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        self.wants_key = not self.wants_key
        if not self.wants_key:
            if isinstance(value, dict | list):
                raise ParseError(f"yaml: invalid map key: {go_syntax(value)}")
            self._key = value
        elif self.merges:
            self.merges = False
            if not isinstance(value, dict):
                raise ParseError(_WANTS_MAPS)
            self._fields.update(value)
        else:
            self._set(json_number(value), line)

    def _set(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        text = key_text(self._key, value)
        if text in self._fields:
            shown_key = go_quote(text) if isinstance(self._key, str) else text
            self._complaints.append(f"line {line + 1}: key {shown_key} already set in map")
        self._fields[text] = value

    def value(self) -> dict[str, Any]:
        return dict(sorted(self._fields.items()))


class _Building:
    """The JSON of a document, as far as its events have come.

    The first thing that makes no sense is kept in `error` until the document ends: go-yaml reads all of the document
    before it looks at what it means, so an error in the syntax further down is told first.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self.error: ParseError | None = None
        #: Complaints about keys that are there twice.
        self.repeated: list[str] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, _Node] = {}
        #: How often go-yaml would have been at a node, in all and inside aliases; the document is one.
        self._count = 1
        self._aliased = 0

        self._by_kind: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.AliasEvent: self._alias,
            **dict.fromkeys(_STARTS, self._begin),
            **dict.fromkeys(_COLLECTION_ENDS, self._end),
        }

    def take(self, kind: type, event: Any) -> None:  # noqa: ANN401 - one of PyYAML's events
        """Go on with the next event, which is of the class `kind`."""
        handle = self._by_kind.get(kind)
        if handle is None or self.error is not None:
            return
        try:
            handle(event)
        except ParseError as problem:
            self.error = problem

    def _scalar(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        tag = None if event.tag == "!" else event.tag
        is_plain = tag is None and event.implicit[0]
        within = self._open[-1] if self._open else None
        may_merge = event.value == _MERGE and (is_plain or tag == TAGS + "merge")
        if may_merge and isinstance(within, _Mapping) and within.wants_key:
            within.merge()
            return
        self._count += 1
        value = plain_meaning(event.value) if is_plain else tagged_meaning(event.value, tag or TAGS + "str")
        if event.anchor is not None:
            self._anchors[event.anchor] = _Node(value, 1, 0, [])
        self._add(value, 0, event.start_mark.line)

    def _begin(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        within = self._open[-1] if self._open else None
        merges = isinstance(within, _Mapping) and within.merges
        start = (event.anchor, event.start_mark.line, self._count, len(self.repeated))
        if isinstance(event, yaml.MappingStartEvent):
            self._open.append(_Mapping(*start, self.repeated))
        elif merges:
            self._open.append(_Sources(*start))
            return
        else:
            self._open.append(_Sequence(*start))
        self._count += 1

    def _end(self, _event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        whole = self._open.pop()
        value = whole.value()
        if whole.anchor is not None:
            count, repeated = self._count - whole.count, self.repeated[whole.repeated :]
            self._anchors[whole.anchor] = _Node(value, count, whole.depth, repeated)
        self._add(value, whole.depth, whole.line)

    def _alias(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        if any(within.anchor == event.anchor for within in self._open):
            raise ParseError(f"yaml: anchor '{event.anchor}' value contains itself")
        node = self._anchors.get(str(event.anchor))
        if node is None:
            raise ParseError(f"yaml: unknown anchor '{event.anchor}' referenced")
        if len(self._open) + node.depth > _DEPTH_LIMIT:
            raise ParseError(_TOO_DEEP)
        self._count += 1 + node.nodes
        self._aliased += node.nodes
        self._check_aliases()
        self.repeated += node.repeated
        self._add(_copy(node.value), node.depth, event.start_mark.line)

    def _check_aliases(self) -> None:
        """Refuse a document most of which is copies: go-yaml v2, decode.go, unmarshal."""
        beyond = min(max(0.0, (self._count - _FEW_NODES) / (_MANY_NODES - _FEW_NODES)), 1.0)
        allowed = 0.99 - 0.89 * beyond
        if self._aliased > 100 and self._count > 1000 and self._aliased > allowed * self._count:
            raise ParseError("yaml: document contains excessive aliasing")

    def _add(self, value: Any, depth: int, line: int) -> None:  # noqa: ANN401 - any JSON
        if not self._open:
            self.value = json_number(value)
            return
        within = self._open[-1]
        within.depth = max(within.depth, depth + 1)
        within.add(value, line)


def _copy(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
