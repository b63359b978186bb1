"""Parse YAML 1.1 to JSON, with go-yaml's error messages.

kube-apiserver converts YAML to JSON with go-yaml v2, a port of libyaml, and sorts the keys (sigs.k8s.io/yaml). We
convert libyaml's events in one pass, without recursion that deep nesting could exhaust. An alias becomes a copy of its
anchor's value. Copies are counted before they are made and limited by go-yaml's rule (decode.go, allowedAliasRatio), so
that a few hundred bytes cannot expand without bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from batkube.api.decoding.json_syntax import ParseError
from batkube.api.decoding.yaml_scalars import (
    TAG_PREFIX,
    key_text,
    resolve_plain,
    resolve_tagged,
    to_json_number,
)
from batkube.text.go_format import go_quote

#: The maximal nesting depth; libyaml gets slower with every level (go-yaml allows 10,000 levels).
_DEPTH_LIMIT = 300
_TOO_DEEP = "yaml: exceeded max depth"
#: Up to the first number of nodes, 99 % of them may come from aliases. The limit then decreases linearly to 10 % at the
#: second number.
_ALIAS_RATIO_LOW_NODES, _ALIAS_RATIO_HIGH_NODES = 400_000, 4_000_000
#: libyaml compares each directive with all previous ones.
_TAG_DIRECTIVES_LIMIT = 1000
_COLLECTION_STARTS = frozenset((yaml.MappingStartEvent, yaml.SequenceStartEvent))
_COLLECTION_ENDS = frozenset((yaml.MappingEndEvent, yaml.SequenceEndEvent))
_DOCUMENT_ENDS = frozenset((yaml.DocumentEndEvent, yaml.StreamEndEvent))
_MERGE_KEY = "<<"
_MERGE_NEEDS_MAPS = "yaml: map merge requires map or sequence of maps as the value"


def parse_yaml(data: bytes, _schema: object = None) -> tuple[Any, list[str]]:
    """Return the first document as JSON, and strict errors about duplicate keys; raises ParseError.

    The schema is unused; the parameter makes the signature that of `parse_json`.
    """
    builder = _DocumentBuilder()
    _parse_first_document(data, builder)
    if builder.error is not None:
        raise builder.error
    if not builder.duplicate_errors:
        return builder.value, []
    return builder.value, ["yaml: unmarshal errors:\n  " + "\n  ".join(builder.duplicate_errors)]


def strict_warnings(problems: list[str]) -> list[str]:
    """Return strict errors as warnings for clients, those of YAML line by line.

    Kubernetes: apiserver/pkg/endpoints/handlers/rest.go, parseYAMLWarnings.
    """
    return [line.strip() for text in problems for line in text.removeprefix("yaml: unmarshal errors:\n").split("\n")]


def _parse_first_document(data: bytes, builder: _DocumentBuilder) -> None:
    """Pass the events of the first document to the builder; raises ParseError."""
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
            builder.handle_event(kind, event)
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
    """Return go-yaml's message, which counts lines from 0 in some errors and omits line 0 (decode.go, fail)."""
    line = 0
    if problem.problem_mark is not None and problem.problem_mark.line:
        line = problem.problem_mark.line + isinstance(problem, yaml.scanner.ScannerError)
    elif problem.context_mark is not None:
        line = problem.context_mark.line
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{problem.problem}"


class _AnchoredNode(NamedTuple):
    """The value of an anchor: its JSON, number of nodes, depth, and errors about duplicate keys."""

    value: Any
    nodes: int
    depth: int
    duplicates: list[str]


class _OpenCollection:
    """An incomplete collection, with the state at its start."""

    def __init__(self, anchor: str | None, line: int, count: int, duplicates: int) -> None:
        self.anchor = anchor
        self.line = line
        self.count = count
        self.duplicates = duplicates
        self.depth = 1

    def add(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        """Add the next node, which begins at `line`."""
        raise NotImplementedError

    def value(self) -> Any:  # noqa: ANN401 - any JSON
        """Return the complete collection as JSON."""
        raise NotImplementedError


class _Sequence(_OpenCollection):
    def __init__(self, anchor: str | None, line: int, count: int, duplicates: int) -> None:
        super().__init__(anchor, line, count, duplicates)
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
    def __init__(self, anchor: str | None, line: int, count: int, duplicates: int, errors: list[str]) -> None:
        super().__init__(anchor, line, count, duplicates)
        self._duplicate_errors = errors
        self._fields: dict[str, Any] = {}
        self._key: Any = None
        #: Whether the next node is a key; otherwise it is a value, of the merge key `<<` if `is_merging`.
        self.expects_key = True
        self.is_merging = False

    def begin_merge(self) -> None:
        """Handle the merge key `<<`."""
        self.expects_key, self.is_merging = False, True

    def add(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        self.expects_key = not self.expects_key
        if not self.expects_key:
            self._key = value
        elif self.is_merging:
            self.is_merging = False
            if not isinstance(value, dict):
                raise ParseError(_MERGE_NEEDS_MAPS)
            self._fields.update(value)
        else:
            self._set_field(to_json_number(value), line)

    def _set_field(self, value: Any, line: int) -> None:  # noqa: ANN401 - any JSON
        text = key_text(self._key)
        if text in self._fields:
            quoted_key = go_quote(text) if isinstance(self._key, str) else text
            self._duplicate_errors.append(f"line {line + 1}: key {quoted_key} already set in map")
        self._fields[text] = value

    def value(self) -> dict[str, Any]:
        return dict(sorted(self._fields.items()))


class _DocumentBuilder:
    """Builds the JSON of a document from its events.

    The first semantic error is kept in `error` until the end of the document: go-yaml parses the whole document before
    it decodes it, so a syntax error further down takes precedence.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self.error: ParseError | None = None
        #: Errors about duplicate keys.
        self.duplicate_errors: list[str] = []
        self._open_collections: list[_OpenCollection] = []
        self._anchors: dict[str, _AnchoredNode] = {}
        #: How many nodes go-yaml would have decoded, in total and within aliases; the document itself counts as one.
        self._node_count = 1
        self._aliased_node_count = 0

        self._handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._on_scalar,
            yaml.AliasEvent: self._on_alias,
            **dict.fromkeys(_COLLECTION_STARTS, self._on_collection_start),
            **dict.fromkeys(_COLLECTION_ENDS, self._on_collection_end),
        }

    def handle_event(self, kind: type, event: Any) -> None:  # noqa: ANN401 - one of PyYAML's events
        """Handle the next event, which is of class `kind`."""
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
        parent = self._open_collections[-1] if self._open_collections else None
        may_merge = event.value == _MERGE_KEY and (is_plain or tag == TAG_PREFIX + "merge")
        if may_merge and isinstance(parent, _Mapping) and parent.expects_key:
            parent.begin_merge()
            return
        self._node_count += 1
        value = resolve_plain(event.value) if is_plain else resolve_tagged(event.value, tag or TAG_PREFIX + "str")
        if event.anchor is not None:
            self._anchors[event.anchor] = _AnchoredNode(value, 1, 0, [])
        self._add(value, 0, event.start_mark.line)

    def _on_collection_start(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        parent = self._open_collections[-1] if self._open_collections else None
        merges = isinstance(parent, _Mapping) and parent.is_merging
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
        collection = self._open_collections.pop()
        value = collection.value()
        if collection.anchor is not None:
            count, duplicates = self._node_count - collection.count, self.duplicate_errors[collection.duplicates :]
            self._anchors[collection.anchor] = _AnchoredNode(value, count, collection.depth, duplicates)
        self._add(value, collection.depth, collection.line)

    def _on_alias(self, event: Any) -> None:  # noqa: ANN401 - PyYAML's event
        if any(parent.anchor == event.anchor for parent in self._open_collections):
            raise ParseError(f"yaml: anchor '{event.anchor}' value contains itself")
        node = self._anchors.get(str(event.anchor))
        if node is None:
            raise ParseError(f"yaml: unknown anchor '{event.anchor}' referenced")
        if len(self._open_collections) + node.depth > _DEPTH_LIMIT:
            raise ParseError(_TOO_DEEP)
        self._node_count += 1 + node.nodes
        self._aliased_node_count += node.nodes
        self._check_aliases()
        self.duplicate_errors += node.duplicates
        self._add(_deep_copy(node.value), node.depth, event.start_mark.line)

    def _check_aliases(self) -> None:
        """Raise ParseError if too many nodes come from aliases (go-yaml v2, decode.go, unmarshal)."""
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
        parent = self._open_collections[-1]
        parent.depth = max(parent.depth, depth + 1)
        parent.add(value, line)


def _deep_copy(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {key: _deep_copy(item) for key, item in value.items()}
    return [_deep_copy(item) for item in value] if isinstance(value, list) else value
