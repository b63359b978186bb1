"""The elements of a SimGrid platform file that describe hosts, with the lines they are on.

Read with expat and not with an XML library on top of it, for three reasons: every element knows its line; files of
a million routes cost no memory, since only what surrounds hosts is kept; and entities, which a platform never needs
and an attacker does, are refused where they are declared. The DTD that platform files name is never fetched.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from xml.parsers import expat

from batkube.kernel.errors import InputError

#: Containers of hosts. `AS` is what SimGrid 3 called a zone; a `cabinet` is a cluster inside a zone of its own kind.
ZONES = ("zone", "AS")
CLUSTERS = ("cluster", "cabinet")
HOSTS = ("host", "peer")

#: What surrounds hosts, and what says how they are connected.
MACHINE_TAGS = frozenset(("platform", *ZONES, *CLUSTERS, *HOSTS))
NETWORK_TAGS = MACHINE_TAGS | {
    "link", "link_ctn", "router", "route", "zoneRoute", "ASroute", "backbone", "host_link", "bypassRoute",
    "bypassZoneRoute", "bypassASroute", "config",
}  # fmt: skip
#: SimGrid's own examples nest three deep.
_DEPTH_MAX = 100


@dataclass(slots=True)
class Element:
    """A container of hosts, a cluster or a host; or something of a network."""

    tag: str
    attributes: dict[str, str]
    line: int
    properties: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    #: How many elements of each other tag the file has; of the outermost element alone.
    others: Counter[str] = field(default_factory=Counter)


def parse_elements(source: str, content: bytes, tags: frozenset[str] = MACHINE_TAGS) -> Element:
    """Return the `<platform>` element of a file, with what is of `tags` in it. Raises InputError with its line."""
    # Some of Batsim's own files begin with an empty line: SimGrid's parser allows it before <?xml …?>, XML does not.
    body = content.lstrip()
    reader = _Reader(source, tags, lines_above=content.count(b"\n") - body.count(b"\n"))
    try:
        reader.parser.Parse(body, True)
    except expat.ExpatError as error:
        problem = f"broken XML: {expat.ErrorString(error.code)}"
        raise InputError(source, at=f"line {reader.line}", problem=problem) from None
    if reader.root is None:
        raise InputError(
            source, problem="not a SimGrid platform: it has no <platform>", remedy="see SimGrid's platform file format"
        )
    reader.root.others = reader.others
    return reader.root


class _Reader:
    """Builds the tree while expat walks over the file."""

    def __init__(self, source: str, tags: frozenset[str], *, lines_above: int) -> None:
        self.source = source
        self._tags = tags
        self.lines_above = lines_above
        self.root: Element | None = None
        self.others: Counter[str] = Counter()
        #: The open elements, outermost first; None stands for those not kept, so that their properties go nowhere.
        self._open: list[Element | None] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._entity

    @property
    def line(self) -> int:
        """The line of the file that expat is at."""
        return self.lines_above + self.parser.CurrentLineNumber

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _DEPTH_MAX:
            raise InputError(
                self.source, at=f"line {self.line}", problem=f"elements nested more than {_DEPTH_MAX} deep"
            )
        if tag == "include":
            raise InputError(
                self.source,
                at=f"line {self.line}",
                problem="includes another file, which is not followed",
                remedy="put the included elements in its place",
            )
        parent = self._open[-1] if self._open else None
        element = None
        if tag == "prop" and parent is not None:
            parent.properties[attributes.get("id", "")] = attributes.get("value", "")
        elif tag in self._tags and (parent is not None or tag == "platform"):
            element = Element(tag, attributes, self.line)
            if parent is not None:
                parent.children.append(element)
            elif not self._open:
                self.root = element
        else:
            self.others[tag] += 1
        self._open.append(element)

    def _end(self, tag: str) -> None:
        self._open.pop()

    def _entity(self, name: str, *_declaration: object) -> None:
        raise InputError(
            self.source,
            at=f"line {self.line}",
            problem=f"declares the entity {name!r}; entities are refused for safety",
            remedy="write out what the entity stands for",
        )
