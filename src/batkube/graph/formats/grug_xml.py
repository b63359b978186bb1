"""Parses GRUG files. They are GraphML: keys with defaults, and nodes and edges with data for keys."""

from __future__ import annotations

import dataclasses

from batkube.files.xml_reader import XmlReader


@dataclasses.dataclass(slots=True)
class RecipePart:
    """A node or an edge of the recipe: its XML attributes, and its data by the names of the keys."""

    line: int
    attributes: dict[str, str]
    data: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class Recipe:
    """The nodes and edges of a recipe, in the order of the file."""

    nodes: list[RecipePart] = dataclasses.field(default_factory=list)
    edges: list[RecipePart] = dataclasses.field(default_factory=list)


def parse_recipe(source: str, content: bytes) -> Recipe:
    """Return the nodes and edges of a GRUG file with defaults filled in. Raises InputError with the line."""
    reader = _RecipeReader(source)
    reader.read(content, "a GRUG recipe is a GraphML file; for another format use -f")
    return reader.recipe()


class _RecipeReader(XmlReader):
    """Collects keys, nodes and edges."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._recipe = Recipe()
        #: The names of keys by id.
        self._names: dict[str, str] = {}
        #: The defaults of keys by name, for nodes and for edges.
        self._defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        #: The attributes of the current <key>.
        self._key: dict[str, str] = {}
        #: The current <node> or <edge>.
        self._part: RecipePart | None = None
        #: The text of the current <default> or <data>.
        self._text: list[str] | None = None
        self._data_key = ""

    def recipe(self) -> Recipe:
        """Return the nodes and edges with the defaults of their keys."""
        for element, parts in (("node", self._recipe.nodes), ("edge", self._recipe.edges)):
            for part in parts:
                part.data = {**self._defaults[element], **part.data}
        return self._recipe

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin a key, a node, an edge, or a value of one."""
        if tag == "key":
            self._key = attributes
            self._names[attributes.get("id", "")] = attributes.get("attr.name", attributes.get("id", ""))
        elif tag in ("node", "edge"):
            self._part = RecipePart(self.line, attributes)
            (self._recipe.nodes if tag == "node" else self._recipe.edges).append(self._part)
        elif tag in ("default", "data"):
            self._text = []
            self._data_key = attributes.get("key", "")

    def on_end(self, tag: str) -> None:
        """Store the value that has ended."""
        text = "".join(self._text or ()).strip()
        if tag == "default":
            self._defaults.get(self._key.get("for", ""), {})[self._names[self._key.get("id", "")]] = text
        elif tag == "data" and self._part is not None:
            if self._data_key not in self._names:
                raise self.error(f"the key {self._data_key!r} is not declared", "declare it with <key>")
            self._part.data[self._names[self._data_key]] = text
        elif tag in ("node", "edge"):
            self._part = None
        if tag in ("default", "data"):
            self._text = None

    def on_text(self, text: str) -> None:
        """Collect the text of a value."""
        if self._text is not None:
            self._text.append(text)
