"""XML files that people write or fetch: platforms, recipes, workflows, walked over element by element.

Read with expat and not with an XML library on top of it, for three reasons: every element knows its line; what is not
kept costs no memory, however much of it there is; and entities, which such files never need and an attacker does, are
refused where they are declared. A DTD that a file names is never fetched.
"""

from __future__ import annotations

from xml.parsers import expat

from batkube.kernel.errors import InputError

#: SimGrid's own examples nest three deep.
_DEPTH_MAX = 100


class XmlReader:
    """Walks over one file; who reads it says what to do where elements begin and end, and with text."""

    def __init__(self, source: str) -> None:
        """`source` is what errors call the file."""
        self.source = source
        #: How many elements are open.
        self.depth = 0
        self._lines_above = 0
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._handle_start
        self._parser.EndElementHandler = self._handle_end
        self._parser.CharacterDataHandler = self.on_text
        self._parser.EntityDeclHandler = self._reject_entity

    def read(self, content: bytes, remedy: str | None = None) -> None:
        """Go through the file. Raises InputError with the line of the trouble; `remedy` is what a broken one needs."""
        # Some of Batsim's and Fluxion's own files have an empty line before <?xml …?>, which XML does not allow.
        body = content.lstrip()
        self._lines_above = content.count(b"\n") - body.count(b"\n")
        try:
            self._parser.Parse(body, True)
        except expat.ExpatError as error:
            raise self.error(f"broken XML: {expat.ErrorString(error.code)}", remedy) from None

    @property
    def line(self) -> int:
        """The line of the file that the walk is at."""
        return self._lines_above + self._parser.CurrentLineNumber

    def error(self, problem: str, remedy: str | None = None) -> InputError:
        """Return the error that says what is wrong here."""
        return InputError(self.source, at=f"line {self.line}", problem=problem, remedy=remedy)

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def on_end(self, tag: str) -> None:
        """An element ends."""

    def on_text(self, text: str) -> None:
        """Some text stands in the element that is open."""

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
            f"declares the entity {name!r}; entities are refused for safety", "write out what the entity stands for"
        )
