"""YAML files that people write or fetch: scenarios, experiments, latencies, catalogues, manifests.

A small file can stand for more than a machine holds: aliases of aliases multiply, and brackets within brackets use up
the stack, which kills the process without a word. So a file is walked over once before it is read, and refused if it
nests or multiplies beyond what anybody means.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from batkube.kernel.errors import InputError

_Result = TypeVar("_Result")

#: How deep a file may nest. Each level takes some of Python's stack.
DEPTH_MAX = 100
#: How many nodes aliases may add to those that are written out.
_ALIASED_MAX = 100_000
#: What PyYAML raises for a value that is not of the type its tag or form claims: dates and numbers beyond all bounds.
_INVALID_VALUE_ERRORS = (ValueError, ArithmeticError, LookupError, AttributeError, TypeError)


class _Rejected(yaml.MarkedYAMLError):
    """What YAML allows and we do not, or the other way around; `remedy` says what to do."""

    def __init__(self, mark: Any, problem: str, remedy: str | None = None) -> None:  # noqa: ANN401 - two classes of marks
        super().__init__(problem=problem, problem_mark=mark)
        self.remedy = remedy


class _Loader(yaml.SafeLoader):
    """Refuses a mapping with a key twice; YAML forbids it, and its library would silently keep the last."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401 - as the library has it
        node = super().compose_mapping_node(anchor)
        seen: dict[tuple[str, str], None] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if (key.tag, key.value) in seen:
                raise _Rejected(key.start_mark, f"the key {key.value!r} is given twice", "keep one of them")
            seen[key.tag, key.value] = None
        return node


def read_yaml(path: Path) -> object:
    """Return what the one document of a YAML file holds. No mapping in it may have a key twice."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}", remedy="check the path") from error
    documents = _load(path, data, _Loader)
    if len(documents) > 1:
        raise InputError(path, problem="is not YAML of one document", remedy="remove the lines `---` in it")
    return documents[0] if documents else None


def yaml_tree(path: Path, data: bytes | str) -> yaml.Node | None:
    """Return the one document of a YAML file as nodes, which know their lines and how they were written."""
    tree: yaml.Node | None = _parse(path, data, lambda: yaml.compose(data, Loader=_Loader))
    return tree


def yaml_documents(path: Path, data: bytes | str) -> list[object]:
    """Return the documents of a YAML file with the content `data`, empty ones too."""
    return _load(path, data, yaml.CSafeLoader)


def _load(path: Path, data: bytes | str, loader: type) -> list[object]:
    """Return the documents in `data`."""
    return _parse(path, data, lambda: list(yaml.load_all(data, Loader=loader)))


def _parse(path: Path, data: bytes | str, reading: Callable[[], _Result]) -> _Result:
    """Do a reading of `data`; what cannot be read is an InputError, with its line where it has one."""
    at, remedy = None, "check the file with a YAML formatter"
    try:
        _ExpansionCheck().check(data)
        return reading()
    except yaml.MarkedYAMLError as error:
        at = f"line {error.problem_mark.line + 1}" if error.problem_mark else None
        problem = f"is not YAML: {error.problem or error.context}"
        if _has_bare_reference(data):
            remedy = 'within braces write "${seed}" in quotes, or leave it out: it is the run\'s unless said'
        if isinstance(error, _Rejected):
            problem, remedy = str(error.problem), error.remedy or "write it out flatly"
    except (UnicodeDecodeError, yaml.reader.ReaderError):
        problem, remedy = "is not YAML: not UTF-8 text, or with characters that YAML forbids", "save it as UTF-8"
    except _INVALID_VALUE_ERRORS as error:
        problem = f"is not YAML: it has a value that cannot be read ({error})"
    raise InputError(path, at=at, problem=problem, remedy=remedy)


def _has_bare_reference(data: bytes | str) -> bool:
    """Say whether `${…}` stands there without quotes: YAML takes its brace for a mapping within braces."""
    text = data if isinstance(data, str) else data.decode(errors="replace")
    return ": ${" in text


class _ExpansionCheck:
    """Counts the nodes of a file as they would be with every alias written out, and how deep they go."""

    def __init__(self) -> None:
        #: How many nodes each anchor of the document stands for.
        self._sizes: dict[str, int] = {}
        #: The collections around the event at hand: their anchors, and the count when they began.
        self._open: list[tuple[str | None, int]] = []
        self._count = 0
        self._aliased = 0

    def check(self, data: bytes | str) -> None:
        """Go through a file; raises _Unreadable."""
        for event in yaml.parse(data, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                self._expand_alias(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._enter_collection(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, start = self._open.pop()
                if anchor is not None:
                    self._sizes[anchor] = self._count - start
            elif isinstance(event, yaml.ScalarEvent):
                self._count += 1
                if event.anchor is not None:
                    self._sizes[event.anchor] = 1
            elif isinstance(event, yaml.DocumentStartEvent):
                self._sizes.clear()

    def _enter_collection(self, event: yaml.CollectionStartEvent) -> None:
        if len(self._open) == DEPTH_MAX:
            raise _Rejected(event.start_mark, f"nested more than {DEPTH_MAX} levels deep")
        self._open.append((event.anchor, self._count))
        self._count += 1

    def _expand_alias(self, event: yaml.AliasEvent) -> None:
        if any(anchor == event.anchor for anchor, _ in self._open):
            raise _Rejected(event.start_mark, f"the anchor {event.anchor!r} contains itself")
        size = self._sizes.get(str(event.anchor), 1)
        self._count += size
        self._aliased += size
        if self._aliased > _ALIASED_MAX:
            problem = f"aliases stand for more than {_ALIASED_MAX:,} values"
            raise _Rejected(event.start_mark, problem, "write out what they stand for, if it is really meant")
