"""The recipe in a GRUG file: GraphML, which declares keys with defaults; nodes and edges have data for some of them."""

from __future__ import annotations

import dataclasses

from batkube.kernel.files.xml_reader import XmlReader


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
    reader = _RecipeReader(source)
    reader.read(content, "a GRUG recipe is a GraphML file; for another format use -f")
    return reader.filled()


class _RecipeReader(XmlReader):
    """Gathers keys, nodes and edges."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.parts = RecipeParts()
        self._names: dict[str, str] = {}
        self._defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        self._key: dict[str, str] = {}
        self._part: RecipePart | None = None
        self._text: list[str] | None = None
        self._data_key = ""

    def filled(self) -> RecipeParts:
        """Return the parts with the defaults of their keys."""
        for kind, parts in (("node", self.parts.nodes), ("edge", self.parts.edges)):
            for part in parts:
                part.data = {**self._defaults[kind], **part.data}
        return self.parts

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take up a key, a node, an edge, or what is said of one."""
        if tag == "key":
            self._key = attributes
            self._names[attributes.get("id", "")] = attributes.get("attr.name", attributes.get("id", ""))
        elif tag in ("node", "edge"):
            self._part = RecipePart(self.line, attributes)
            (self.parts.nodes if tag == "node" else self.parts.edges).append(self._part)
        elif tag in ("default", "data"):
            self._text = []
            self._data_key = attributes.get("key", "")

    def on_end(self, tag: str) -> None:
        """Put the text of what has ended where it belongs."""
        text = "".join(self._text or ()).strip()
        if tag == "default":
            self._defaults.get(self._key.get("for", ""), {})[self._names[self._key.get("id", "")]] = text
        elif tag == "data" and self._part is not None:
            if self._data_key not in self._names:
                raise self.error(f"data for the key {self._data_key!r}, which is not declared", "declare it with <key>")
            self._part.data[self._names[self._data_key]] = text
        elif tag in ("node", "edge"):
            self._part = None
        if tag in ("default", "data"):
            self._text = None

    def on_text(self, text: str) -> None:
        """Gather the text of a value."""
        if self._text is not None:
            self._text.append(text)
