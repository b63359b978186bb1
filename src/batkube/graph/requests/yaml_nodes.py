"""The nodes of a jobspec's YAML, with their places. Scalars stay text until they are converted.

Fluxion reads jobspecs in the same way with yaml-cpp: `count: "4"` is 4, and `exclusive: yes` is not
true. See flux-sched resource/libjobspec/jobspec.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import yaml

from batkube.files.yaml_reader import yaml_tree
from batkube.kernel.errors import InputError

_Decoded = TypeVar("_Decoded")


class SpecNode:
    """A mapping, a list or a scalar of a jobspec."""

    def __init__(self, path: Path, node: yaml.Node, place: str) -> None:
        self._path = path
        self._node = node
        self.place = place

    @property
    def is_scalar(self) -> bool:
        """Whether it is a single value, possibly null."""
        return isinstance(self._node, yaml.ScalarNode)

    @property
    def is_null(self) -> bool:
        """Whether it is null."""
        return self._node.tag == "tag:yaml.org,2002:null"

    @property
    def is_quoted(self) -> bool:
        """Whether it is a quoted value."""
        return isinstance(self._node, yaml.ScalarNode) and self._node.style in ("'", '"')

    def mapping(self, what: str) -> dict[str, SpecNode]:
        """Return the values of a mapping by key."""
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error(f"{what} is not a mapping", "write `key: value` lines")
        prefix = f"{self.place}." if self.place else ""
        return {str(key.value): SpecNode(self._path, value, f"{prefix}{key.value}") for key, value in self._node.value}

    def sequence(self, what: str) -> list[SpecNode]:
        """Return the items of a list."""
        if not isinstance(self._node, yaml.SequenceNode):
            raise self.error(f"{what} is not a list", "write `- …` lines")
        return [SpecNode(self._path, value, f"{self.place}[{i}]") for i, value in enumerate(self._node.value)]

    def string(self, what: str) -> str:
        """Return the text of a scalar."""
        if not isinstance(self._node, yaml.ScalarNode):
            raise self.error(f"{what} is not a scalar", "write a single value")
        return str(self._node.value)

    def integer(self, what: str, *, at_least: int = 0, at_most: int = 2**32 - 1) -> int:
        """Return the integer in a scalar."""
        text = self.string(what)
        try:
            number = int(text)
        except ValueError:
            raise self.error(f"{what} is {text!r}", "use a whole number") from None
        if not at_least <= number <= at_most:
            raise self.error(f"{what} is {number}", f"use a whole number from {at_least} to {at_most}")
        return number

    def decode(self, decode: Callable[[str], _Decoded]) -> _Decoded:
        """Return the text of a scalar decoded by a function. A ValueError becomes an InputError."""
        try:
            return decode(self.string("the value"))
        except ValueError as error:
            raise self.error(str(error), "write it like `0-3,7` or `node[0-3,7]`") from None

    def error(self, problem: str, remedy: str | None = None) -> InputError:
        """Return an InputError with the place of this node."""
        line = self._node.start_mark.line + 1
        at = f"line {line}, {self.place}" if self.place else f"line {line}"
        return InputError(self._path, at=at, problem=problem, remedy=remedy)


def read_spec(path: Path, content: bytes | str) -> SpecNode:
    """Return the root node of a jobspec file."""
    node = yaml_tree(path, content)
    if node is None:
        raise InputError(path, problem="is empty", remedy="write a jobspec (RFC 14)")
    return SpecNode(path, node, "")
