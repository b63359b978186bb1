"""The parts of a jobspec file, as they were written: every part knows its place, and a scalar is text until asked.

Fluxion reads jobspecs the same way (yaml-cpp): `count: "4"` is four, and `exclusive: yes` is not `true`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import yaml

from batkube.kernel.errors import InputError
from batkube.kernel.files.yaml_reader import yaml_tree

_Decoded = TypeVar("_Decoded")


class SpecNode:
    """A mapping, a list or a scalar of a jobspec."""

    def __init__(self, path: Path, node: yaml.Node, place: str) -> None:
        self._path = path
        self._node = node
        self.place = place

    @property
    def is_scalar(self) -> bool:
        """Whether it is one value, which may be null."""
        return isinstance(self._node, yaml.ScalarNode)

    @property
    def is_null(self) -> bool:
        """Whether nothing stands there."""
        return self._node.tag == "tag:yaml.org,2002:null"

    @property
    def is_quoted(self) -> bool:
        """Whether it is a value in quotes."""
        return isinstance(self._node, yaml.ScalarNode) and self._node.style in ("'", '"')

    def mapping(self, what: str) -> dict[str, SpecNode]:
        """Return what a mapping has, by key."""
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error(f"{what} is not a mapping", "write `key: value` lines")
        prefix = f"{self.place}." if self.place else ""
        return {str(key.value): SpecNode(self._path, value, f"{prefix}{key.value}") for key, value in self._node.value}

    def sequence(self, what: str) -> list[SpecNode]:
        """Return what a list has."""
        if not isinstance(self._node, yaml.SequenceNode):
            raise self.error(f"{what} is not a list", "write `- …` lines")
        return [SpecNode(self._path, value, f"{self.place}[{i}]") for i, value in enumerate(self._node.value)]

    def string(self, what: str) -> str:
        """Return what a scalar says."""
        if not isinstance(self._node, yaml.ScalarNode):
            raise self.error(f"{what} is not a single value", "write one value")
        return str(self._node.value)

    def integer(self, what: str, *, at_least: int = 0, at_most: int = 2**32 - 1) -> int:
        """Return the whole number that a scalar says."""
        text = self.string(what)
        try:
            number = int(text)
        except ValueError:
            raise self.error(f"{what} is {text!r}", "give a whole number") from None
        if not at_least <= number <= at_most:
            raise self.error(f"{what} is {number}", f"it is at least {at_least} and at most {at_most}")
        return number

    def decode(self, decode: Callable[[str], _Decoded]) -> _Decoded:
        """Return what a function makes of a scalar's text; its ValueError is told with the place."""
        try:
            return decode(self.string("it"))
        except ValueError as error:
            raise self.error(str(error), "write it like `0-3,7` or `node[0-3,7]`") from None

    def error(self, problem: str, remedy: str | None = None) -> InputError:
        """Return the error that something here is wrong."""
        line = self._node.start_mark.line + 1
        at = f"line {line}, {self.place}" if self.place else f"line {line}"
        return InputError(self._path, at=at, problem=problem, remedy=remedy)


def read_spec(path: Path, content: bytes | str) -> SpecNode:
    """Return the root of a jobspec file."""
    node = yaml_tree(path, content)
    if node is None:
        raise InputError(path, problem="is empty", remedy="write a jobspec (RFC 14) into it")
    return SpecNode(path, node, "")
