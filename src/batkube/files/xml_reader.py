"""XML input files (platforms, recipes, workflows), read with callbacks per element.

Uses expat directly, for three reasons: every element knows its line; elements that are not needed cost no memory; and
entity declarations can be rejected, which these files never need and attackers use. An external DTD is never fetched.
"""

from __future__ import annotations

from xml.parsers import expat

from batkube.kernel.errors import InputError

#: SimGrid's own examples nest three deep.
_DEPTH_MAX = 100


class XmlReader:
    """Parses one file. Subclasses override `on_start`, `on_end` and `on_text`."""

    def __init__(self, source: str) -> None:
        """`source` is the name of the file in error messages."""
        self.source = source
        #: The number of open elements.
        self.depth = 0
        self._lines_above = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._handle_start
        self._parser.EndElementHandler = self._handle_end
        self._parser.CharacterDataHandler = self.on_text
        self._parser.EntityDeclHandler = self._reject_entity

    def read(self, content: bytes, remedy: str | None = None) -> None:
        """Parse the file. Raises InputError with the line; `remedy` is the advice if it is not well-formed XML."""
        # Some of Batsim's and Fluxion's own files have an empty line before <?xml …?>, which XML does not allow.
        body = content.lstrip()
        self._lines_above = content.count(b"\n") - body.count(b"\n")
        try:
            self._parser.Parse(body, True)
        except expat.ExpatError as error:
            raise self.error(f"broken XML: {expat.ErrorString(error.code)}", remedy) from None

    @property
    def line(self) -> int:
        """The current line of the file."""
        return self._lines_above + self._parser.CurrentLineNumber

    def error(self, problem: str, remedy: str | None = None) -> InputError:
        """Return an InputError for the current line."""
        return InputError(self.source, at=f"line {self.line}", problem=problem, remedy=remedy)

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""

    def on_end(self, tag: str) -> None:
        """Handle the end of an element."""

    def on_text(self, text: str) -> None:
        """Handle text in the current element."""

    def _handle_start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.depth >= _DEPTH_MAX:
            raise self.error(f"elements nested more than {_DEPTH_MAX} deep")
        self.on_start(tag, attributes)
        self.depth += 1

    def _handle_end(self, tag: str) -> None:
        self.depth -= 1
        self.on_end(tag)

    def _reject_entity(self, name: str, *_declaration: object) -> None:
        raise self.error(
            f"declares the entity {name!r}; entities are not allowed, for safety", "replace each entity by its text"
        )
