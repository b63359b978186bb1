"""YAML input files: scenarios, experiments, latencies, catalogues, manifests.

A small file can expand beyond all memory: aliases of aliases multiply, and deep nesting overflows the stack, which
kills the process without a message. Each file is therefore scanned before it is loaded, and rejected if it nests too
deeply or expands too far.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from batkube.kernel.errors import InputError

_Result = TypeVar("_Result")

#: Maximum nesting depth; each level takes some of Python's stack.
DEPTH_MAX = 100
#: Maximum number of nodes that aliases may add.
_ALIASED_MAX = 100_000
#: Raised by PyYAML for a value that does not fit its tag or form, such as an invalid date or a huge number.
_INVALID_VALUE_ERRORS = (ValueError, ArithmeticError, LookupError, AttributeError, TypeError)


class _Rejected(yaml.MarkedYAMLError):
    """The file breaks a rule that PyYAML does not check; `remedy` is the advice for the user."""

    def __init__(self, mark: Any, problem: str, remedy: str | None = None) -> None:  # noqa: ANN401 - two classes of marks
        super().__init__(problem=problem, problem_mark=mark)
        self.remedy = remedy


class _Loader(yaml.composer.Composer, yaml.CSafeLoader):
    """Rejects duplicate keys. YAML forbids them, but PyYAML silently takes the last one.

    PyYAML's composer in Python, which can be extended, gets its events from the parser in C.
    """

    def __init__(self, stream: bytes | str) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        yaml.composer.Composer.__init__(self)

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
    """Read a YAML file of at most one document, without duplicate keys. Raises InputError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}", remedy="check the path") from error
    documents = _load(path, data, _Loader)
    if len(documents) > 1:
        raise InputError(path, problem="is not YAML of one document", remedy="remove the lines `---` in it")
    return documents[0] if documents else None


def yaml_tree(path: Path, data: bytes | str) -> yaml.Node | None:
    """Parse a YAML document into nodes, which carry their lines and styles."""
    tree: yaml.Node | None = _parse(path, data, lambda: yaml.compose(data, Loader=_Loader))
    return tree


def yaml_documents(path: Path, data: bytes | str) -> list[object]:
    """Parse all documents in `data`, including empty ones."""
    return _load(path, data, yaml.CSafeLoader)


def _load(path: Path, data: bytes | str, loader: type) -> list[object]:
    """Load the documents in `data`."""
    return _parse(path, data, lambda: list(yaml.load_all(data, Loader=loader)))


def _parse(path: Path, data: bytes | str, reading: Callable[[], _Result]) -> _Result:
    """Run `reading` on `data`. Turns any parse error into an InputError, with its line if it has one."""
    at, remedy = None, "check the file with a YAML formatter"
    try:
        _ExpansionCheck().check(data)
        return reading()
    except yaml.MarkedYAMLError as error:
        at = f"line {error.problem_mark.line + 1}" if error.problem_mark else None
        problem = f"is not YAML: {error.problem or error.context}"
        if _has_bare_reference(data):
            remedy = 'quote it within braces, "${seed}", or leave it out: the seed of the run is the default'
        if isinstance(error, _Rejected):
            problem, remedy = str(error.problem), error.remedy or "reduce the nesting"
    except (UnicodeDecodeError, yaml.reader.ReaderError):
        problem, remedy = "is not YAML: not UTF-8 text, or with characters that YAML forbids", "save it as UTF-8"
    except _INVALID_VALUE_ERRORS as error:
        problem = f"is not YAML: it has a value that cannot be read ({error})"
    raise InputError(path, at=at, problem=problem, remedy=remedy)


def _has_bare_reference(data: bytes | str) -> bool:
    """Return whether a value is an unquoted `${…}`, whose brace YAML takes for a mapping within flow mappings."""
    text = data if isinstance(data, str) else data.decode(errors="replace")
    return ": ${" in text


class _ExpansionCheck:
    """Counts the nodes of a file with all aliases expanded, and limits its nesting depth."""

    def __init__(self) -> None:
        #: Number of nodes behind each anchor of the document.
        self._sizes: dict[str, int] = {}
        #: The open collections: the anchor of each, and the node count at its start.
        self._open: list[tuple[str | None, int]] = []
        self._count = 0
        self._aliased = 0

    def check(self, data: bytes | str) -> None:
        """Scan `data`. Raises _Rejected."""
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
            raise _Rejected(event.start_mark, problem, "replace them by their values if this is intended")
