"""The elements of a SimGrid platform file that describe hosts, with the lines they are on.

Files of a million routes cost no memory: only what surrounds hosts is kept, or what a network is made of.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from batkube.kernel.errors import InputError
from batkube.kernel.files.xml_reader import XmlReader

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


@dataclass(slots=True)
class Element:
    """A container of hosts, a cluster or a host; or something of a network."""

    tag: str
    attributes: dict[str, str]
    line: int
    properties: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    #: How many elements of each other tag the file has; of the outermost element alone.
    other_tag_counts: Counter[str] = field(default_factory=Counter)


def parse_elements(source: str, content: bytes, tags: frozenset[str] = MACHINE_TAGS) -> Element:
    """Return the `<platform>` element of a file, with what is of `tags` in it. Raises InputError with its line."""
    reader = _Reader(source, tags)
    reader.read(content)
    if reader.root is None:
        raise InputError(
            source, problem="not a SimGrid platform: it has no <platform>", remedy="see SimGrid's platform file format"
        )
    reader.root.other_tag_counts = reader.other_tag_counts
    return reader.root


class _Reader(XmlReader):
    """Builds the tree."""

    def __init__(self, source: str, tags: frozenset[str]) -> None:
        super().__init__(source)
        self._tags = tags
        self.root: Element | None = None
        self.other_tag_counts: Counter[str] = Counter()
        #: The open elements, outermost first; None stands for those not kept, so that their properties go nowhere.
        self._open: list[Element | None] = []

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """Keep an element of the tags that are wanted, or a property of one."""
        if tag == "include":
            raise self.error("includes another file, which is not followed", "put the included elements in its place")
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
        """Go on with the element around it."""
        self._open.pop()
