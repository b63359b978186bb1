"""Parses SimGrid platform files into elements with line numbers.

Only requested elements are kept, so a file with a million routes uses little memory if only its hosts are read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from batkube.files.xml_reader import XmlReader
from batkube.kernel.errors import InputError

#: Containers of hosts. `AS` is the former name of a zone; a `cabinet` is a set of hosts in a Cluster zone.
ZONES = ("zone", "AS")
CLUSTERS = ("cluster", "cabinet")
HOSTS = ("host", "peer")

#: The elements around hosts, and those of the network.
MACHINE_TAGS = frozenset(("platform", *ZONES, *CLUSTERS, *HOSTS))
NETWORK_TAGS = MACHINE_TAGS | {
    "link", "link_ctn", "router", "route", "zoneRoute", "ASroute", "backbone", "host_link", "bypassRoute",
    "bypassZoneRoute", "bypassASroute", "config",
}  # fmt: skip


@dataclass(slots=True)
class Element:
    """An element of the file."""

    tag: str
    attributes: dict[str, str]
    line: int
    properties: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    #: The counts of all other elements of the file, by tag; only on the outermost element.
    other_tag_counts: Counter[str] = field(default_factory=Counter)


def parse_elements(source: str, content: bytes, tags: frozenset[str] = MACHINE_TAGS) -> Element:
    """Return the `<platform>` element of a file, with its elements of `tags`. Raise InputError."""
    reader = _Reader(source, tags)
    reader.read(content)
    if reader.root is None:
        raise InputError(
            source, problem="not a SimGrid platform: no <platform> element", remedy="see SimGrid's platform file format"
        )
    reader.root.other_tag_counts = reader.other_tag_counts
    return reader.root


class _Reader(XmlReader):
    """Builds the tree of elements."""

    def __init__(self, source: str, tags: frozenset[str]) -> None:
        super().__init__(source)
        self._tags = tags
        self.root: Element | None = None
        self.other_tag_counts: Counter[str] = Counter()
        #: The open elements, outermost first; None for those that are not kept, whose properties are ignored.
        self._open: list[Element | None] = []

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """Keep an element of the requested tags, or a property of one."""
        if tag == "include":
            raise self.error("<include> is not supported", "insert the elements of the included file")
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
            self.other_tag_counts[tag] += 1
        self._open.append(element)

    def on_end(self, tag: str) -> None:
        """Return to the parent element."""
        self._open.pop()
