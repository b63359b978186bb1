"""The recipe in a GRUG file: GraphML, read with expat so that every part knows its line.

A GraphML file declares keys with defaults, and its nodes and edges carry data for some of them. Entities, which a
recipe never needs and an attacker does, are refused where they are declared.
"""

from __future__ import annotations

import dataclasses
from xml.parsers import expat

from batkube.kernel.errors import InputError

_DEPTH_MAX = 100


@dataclasses.dataclass(slots=True)
class RecipePart:
    """A node or an edge of the recipe: its XML attributes, and its data by the names of the keys."""

    line: int
    attributes: dict[str, str]
    data: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class RecipeParts:
    """What stands in a recipe, in the order of the file."""

    nodes: list[RecipePart] = dataclasses.field(default_factory=list)
    edges: list[RecipePart] = dataclasses.field(default_factory=list)


def parse_recipe(source: str, content: bytes) -> RecipeParts:
    """Return the nodes and edges of a GRUG file, defaults filled in. Raises InputError with the line of the trouble."""
    # Like SimGrid's, some of Fluxion's own files have something before <?xml …?>, which XML does not allow.
    body = content.lstrip()
    reader = _RecipeReader(source, lines_above=content.count(b"\n") - body.count(b"\n"))
    try:
        reader.parser.Parse(body, True)
    except expat.ExpatError as error:
        problem = f"broken XML: {expat.ErrorString(error.code)}"
        remedy = "a GRUG recipe is a GraphML file; for another format use -f"
        raise InputError(source, at=f"line {reader.line}", problem=problem, remedy=remedy) from None
    return reader.filled()


class _RecipeReader:
    """Gathers keys, nodes and edges while expat walks over the file."""

    def __init__(self, source: str, *, lines_above: int) -> None:
        self.source = source
        self.lines_above = lines_above
        self.parts = RecipeParts()
        self._names: dict[str, str] = {}
        self._defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        self._key: dict[str, str] = {}
        self._part: RecipePart | None = None
        self._text: list[str] | None = None
        self._data_key = ""
        self._depth = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity

    @property
    def line(self) -> int:
        """The line of the file that expat is at."""
        return self.lines_above + self.parser.CurrentLineNumber

    def filled(self) -> RecipeParts:
        """Return the parts with the defaults of their keys."""
        for kind, parts in (("node", self.parts.nodes), ("edge", self.parts.edges)):
            for part in parts:
                part.data = {**self._defaults[kind], **part.data}
        return self.parts

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            raise self._wrong(f"elements nested more than {_DEPTH_MAX} deep", "write it out flatly")
        if tag == "key":
            self._key = attributes
            self._names[attributes.get("id", "")] = attributes.get("attr.name", attributes.get("id", ""))
        elif tag in ("node", "edge"):
            self._part = RecipePart(self.line, attributes)
            (self.parts.nodes if tag == "node" else self.parts.edges).append(self._part)
        elif tag in ("default", "data"):
            self._text = []
            self._data_key = attributes.get("key", "")

    def _end(self, tag: str) -> None:
        self._depth -= 1
        text = "".join(self._text or ()).strip()
        if tag == "default":
            self._defaults.get(self._key.get("for", ""), {})[self._names[self._key.get("id", "")]] = text
        elif tag == "data" and self._part is not None:
            if self._data_key not in self._names:
                raise self._wrong(
                    f"data for the key {self._data_key!r}, which is not declared", "declare it with <key>"
                )
            self._part.data[self._names[self._data_key]] = text
        elif tag in ("node", "edge"):
            self._part = None
        if tag in ("default", "data"):
            self._text = None

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _entity(self, name: str, *_declaration: object) -> None:
        raise self._wrong(
            f"declares the entity {name!r}; entities are refused for safety", "write out what the entity stands for"
        )

    def _wrong(self, problem: str, remedy: str) -> InputError:
        return InputError(self.source, at=f"line {self.line}", problem=problem, remedy=remedy)
