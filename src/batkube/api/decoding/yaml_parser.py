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
from batkube.api.decoding.yaml_scalars import (
    TAG_PREFIX,
    go_syntax,
    key_text,
    resolve_plain,
    resolve_tagged,
    to_json_number,
)
from batkube.kernel.text.go_format import go_quote

#: Deeper nesting is refused; libyaml gets slower with every level (go-yaml stops at 10,000 levels).
_DEPTH_LIMIT = 300
_TOO_DEEP = "yaml: exceeded max depth"
#: Until so many nodes, 99 in 100 may come from aliases; from there on fewer, down to one in ten of
#: `_ALIAS_RATIO_HIGH_NODES`.
_ALIAS_RATIO_LOW_NODES, _ALIAS_RATIO_HIGH_NODES = 400_000, 4_000_000
#: libyaml compares every directive with all before it.
_TAG_DIRECTIVES_LIMIT = 1000
_COLLECTION_STARTS = frozenset((yaml.MappingStartEvent, yaml.SequenceStartEvent))
_COLLECTION_ENDS = frozenset((yaml.MappingEndEvent, yaml.SequenceEndEvent))
_DOCUMENT_ENDS = frozenset((yaml.DocumentEndEvent, yaml.StreamEndEvent))
_MERGE_KEY = "<<"
_MERGE_NEEDS_MAPS = "yaml: map merge requires map or sequence of maps as the value"


def parse_yaml(data: bytes, _schema: object = None) -> tuple[Any, list[str]]:
    """Return the first document as JSON, and what strict decoding says of keys that are there twice.

    Raises ParseError. The schema is not needed, as YAML has been turned into JSON before it is decoded.
    """
    building = _DocumentBuilder()
    _parse_first_document(data, building)
    if building.error is not None:
        raise building.error
    if not building.duplicate_errors:
        return building.value, []
    return building.value, ["yaml: unmarshal errors:\n  " + "\n  ".join(building.duplicate_errors)]


def strict_warnings(problems: list[str]) -> list[str]:
    """Return strict errors as the warnings that clients get: those of YAML line by line.

    Kubernetes: apiserver/pkg/endpoints/handlers/rest.go, parseYAMLWarnings.
    """
    return [line.strip() for text in problems for line in text.removeprefix("yaml: unmarshal errors:\n").split("\n")]


def _parse_first_document(data: bytes, building: _DocumentBuilder) -> None:
    """Hand over the events of the first document one by one; raises ParseError."""
    if data.startswith(b"%") and data.count(b"\n%TAG") > _TAG_DIRECTIVES_LIMIT:
        raise ParseError("yaml: too many %TAG directives")
    loader, depth = None, 0
    try:
        loader = yaml.CSafeLoader(data)
        while (kind := type(event := loader.get_event())) not in _DOCUMENT_ENDS:
            if kind in _COLLECTION_STARTS:
                depth += 1
                if depth > _DEPTH_LIMIT:
                    raise ParseError(_TOO_DEEP)
            building.handle_event(kind, event)
            if kind in _COLLECTION_ENDS:
                depth -= 1
    except yaml.MarkedYAMLError as problem:
        raise ParseError(_go_yaml_message(problem)) from problem
    except yaml.reader.ReaderError as problem:
        raise ParseError(f"yaml: {problem.reason}") from problem
    finally:
        if loader is not None:
            loader.dispose()


def _go_yaml_message(problem: yaml.MarkedYAMLError) -> str:
    """Return go-yaml's words; it counts lines from 0 in some errors, and leaves out line 0 (decode.go, fail)."""
    line = 0
    if problem.problem_mark is not None and problem.problem_mark.line:
        line = problem.problem_mark.line + isinstance(problem, yaml.scanner.ScannerError)
    elif problem.context_mark is not None:
        line = problem.context_mark.line
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{problem.problem}"


class _AnchoredNode(NamedTuple):
    """What an anchor holds: its JSON, how many nodes and levels it has, and which keys in it are there twice."""

    value: Any
    nodes: int
    depth: int
    repeated: list[str]


class _OpenCollection:
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


class _Sequence(_OpenCollection):
    def __init__(self, anchor: str | None, line: int, count: int, repeated: int) -> None:
        super().__init__(anchor, line, count, repeated)
        self.items: list[Any] = []

    def add(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        self.items.append(to_json_number(value))

    def value(self) -> Any:  # noqa: ANN401 - any JSON
        return self.items


class _MergeSources(_Sequence):
    """The mappings of `<<: [*a, *b]`; the earlier ones take precedence."""

    def value(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for source in reversed(self.items):
            if not isinstance(source, dict):
                raise ParseError(_MERGE_NEEDS_MAPS)
            merged.update(source)
        return merged


class _Mapping(_OpenCollection):
    def __init__(self, anchor: str | None, line: int, count: int, repeated: int, complaints: list[str]) -> None:
        super().__init__(anchor, line, count, repeated)
        self._duplicate_errors = complaints
        self._fields: dict[str, Any] = {}
        self._key: Any = None
        #: Whether the next node is a key, and not the value of one; and whether that key is `<<`.
        self.expects_key = True
        self.is_merging = False

    def begin_merge(self) -> None:
        """Take the key `<<` in."""
        self.expects_key, self.is_merging = False, True

    def add(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        self.expects_key = not self.expects_key
        if not self.expects_key:
            if isinstance(value, dict | list):
                raise ParseError(f"yaml: invalid map key: {go_syntax(value)}")
            self._key = value
        elif self.is_merging:
            self.is_merging = False
            if not isinstance(value, dict):
                raise ParseError(_MERGE_NEEDS_MAPS)
            self._fields.update(value)
        else:
            self._set_field(to_json_number(value), line)

    def _set_field(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        text = key_text(self._key, value)
        if text in self._fields:
            shown_key = go_quote(text) if isinstance(self._key, str) else text
            self._duplicate_errors.append(f"line {line + 1}: key {shown_key} already set in map")
        self._fields[text] = value

    def value(self) -> dict[str, Any]:
        return dict(sorted(self._fields.items()))


class _DocumentBuilder:
    """The JSON of a document, as far as its events have come.

    The first thing that makes no sense is kept in `error` until the document ends: go-yaml reads all of the document
    before it looks at what it means, so an error in the syntax further down is told first.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self.error: ParseError | None = None
        #: Complaints about keys that are there twice.
        self.duplicate_errors: list[str] = []
        self._open_collections: list[_OpenCollection] = []
        self._anchors: dict[str, _AnchoredNode] = {}
        #: How often go-yaml would have been at a node, in all and inside aliases; the document is one.
        self._node_count = 1
        self._aliased_node_count = 0

        self._handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._on_scalar,
            yaml.AliasEvent: self._on_alias,
            **dict.fromkeys(_COLLECTION_STARTS, self._on_collection_start),
            **dict.fromkeys(_COLLECTION_ENDS, self._on_collection_end),
        }

    def handle_event(self, kind: type, event: Any) -> None:  # noqa: ANN401 - one of PyYAML's events
        """Go on with the next event, which is of the class `kind`."""
        handle = self._handlers.get(kind)
        if handle is None or self.error is not None:
            return
        try:
            handle(event)
        except ParseError as problem:
            self.error = problem

    def _on_scalar(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        tag = None if event.tag == "!" else event.tag
        is_plain = tag is None and event.implicit[0]
        within = self._open_collections[-1] if self._open_collections else None
        may_merge = event.value == _MERGE_KEY and (is_plain or tag == TAG_PREFIX + "merge")
        if may_merge and isinstance(within, _Mapping) and within.expects_key:
            within.begin_merge()
            return
        self._node_count += 1
        value = resolve_plain(event.value) if is_plain else resolve_tagged(event.value, tag or TAG_PREFIX + "str")
        if event.anchor is not None:
            self._anchors[event.anchor] = _AnchoredNode(value, 1, 0, [])
        self._add(value, 0, event.start_mark.line)

    def _on_collection_start(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        within = self._open_collections[-1] if self._open_collections else None
        merges = isinstance(within, _Mapping) and within.is_merging
        start = (event.anchor, event.start_mark.line, self._node_count, len(self.duplicate_errors))
        if isinstance(event, yaml.MappingStartEvent):
            self._open_collections.append(_Mapping(*start, self.duplicate_errors))
        elif merges:
            self._open_collections.append(_MergeSources(*start))
            return
        else:
            self._open_collections.append(_Sequence(*start))
        self._node_count += 1

    def _on_collection_end(self, _event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        whole = self._open_collections.pop()
        value = whole.value()
        if whole.anchor is not None:
            count, repeated = self._node_count - whole.count, self.duplicate_errors[whole.repeated :]
            self._anchors[whole.anchor] = _AnchoredNode(value, count, whole.depth, repeated)
        self._add(value, whole.depth, whole.line)

    def _on_alias(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        if any(within.anchor == event.anchor for within in self._open_collections):
            raise ParseError(f"yaml: anchor '{event.anchor}' value contains itself")
        node = self._anchors.get(str(event.anchor))
        if node is None:
            raise ParseError(f"yaml: unknown anchor '{event.anchor}' referenced")
        if len(self._open_collections) + node.depth > _DEPTH_LIMIT:
            raise ParseError(_TOO_DEEP)
        self._node_count += 1 + node.nodes
        self._aliased_node_count += node.nodes
        self._check_aliases()
        self.duplicate_errors += node.repeated
        self._add(_deep_copy(node.value), node.depth, event.start_mark.line)

    def _check_aliases(self) -> None:
        """Refuse a document most of which is copies: go-yaml v2, decode.go, unmarshal."""
        beyond = min(
            max(0.0, (self._node_count - _ALIAS_RATIO_LOW_NODES) / (_ALIAS_RATIO_HIGH_NODES - _ALIAS_RATIO_LOW_NODES)),
            1.0,
        )
        allowed = 0.99 - 0.89 * beyond
        if (
            self._aliased_node_count > 100
            and self._node_count > 1000
            and self._aliased_node_count > allowed * self._node_count
        ):
            raise ParseError("yaml: document contains excessive aliasing")

    def _add(self, value: Any, depth: int, line: int) -> None:  # noqa: ANN401 - any JSON
        if not self._open_collections:
            self.value = to_json_number(value)
            return
        within = self._open_collections[-1]
        within.depth = max(within.depth, depth + 1)
        within.add(value, line)


def _deep_copy(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {key: _deep_copy(item) for key, item in value.items()}
    return [_deep_copy(item) for item in value] if isinstance(value, list) else value
