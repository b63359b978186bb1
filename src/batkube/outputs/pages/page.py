"""The frame of a report: one HTML file that asks the network for nothing and reads well without its script.

The page's own policy forbids every request and every script but ours (Content Security Policy, W3C), so that a report
may be mailed, archived and opened anywhere. Colours are variables: the page and the figures in it follow the reader's
light or dark setting. The script only adds sorting and filtering to tables; without it they are plain tables.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.outputs.files.derived_files import write_derived_file
from batkube.outputs.pages.colours import DARK, LIGHT
from batkube.outputs.pages.markup import Child, Markup, element, join, trusted

#: By this our own pages are known: only those are replaced without having been named.
_GENERATOR = '<meta name="generator" content="Batkube">'
_HEAD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report, reached from the contents by its anchor."""

    anchor: str
    title: str
    content: Markup


def render_page(title: str, lead: Sequence[Child], sections: Sequence[Section]) -> str:
    """Return the whole page: the title, what to know first, and the sections with a list of them."""
    style = _resource("page.css").replace("/*light*/", _css_variables(LIGHT)).replace("/*dark*/", _css_variables(DARK))
    script = _resource("page.js")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=content_security_policy(script)),
        trusted(_GENERATOR),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", trusted(style)),
    )
    contents = [element("li", element("a", section.title, href=f"#{section.anchor}")) for section in sections]
    body = element(
        "body",
        element("header", element("h1", title), *lead),
        element("nav", element("ul", *contents), aria_label="Contents"),
        element("main", *(_section(section) for section in sections)),
        element("script", trusted(script)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def write_page(path: Path, content: str) -> Path:
    """Write a page; it takes the place of an older one when it is complete."""
    write_derived_file(path, content.encode())
    return path


def default_page_path(folder: Path) -> Path:
    """Return where the page of a folder goes that nobody has named. Raises InputError if there is somebody else's."""
    path = folder / "report.html"
    if path.is_file() and _GENERATOR.encode() not in path.read_bytes()[:_HEAD_BYTES]:
        raise InputError(path, problem="exists and is no report of Batkube's", remedy="name the page to write with -o")
    return path


def paragraph(*children: Child, class_: str | None = None) -> Markup:
    """Return a paragraph."""
    return element("p", *children, class_=class_)


def collapsible(summary: Child, *children: Child, is_open: bool = False, class_: str | None = None) -> Markup:
    """Return something that is shown when its summary is clicked, also without a script."""
    return element("details", element("summary", summary), *children, open=is_open, class_=class_)


def collapsible_if_long(summary: Child, content: Markup, *, count: int, few: int) -> Markup:
    """Return what is short as it is, and what is long behind its summary."""
    return content if count <= few else collapsible(summary, content)


def verbatim(text: str) -> Markup:
    """Return program text or log lines as they are."""
    return element("pre", text, tabindex=0)


def definition_list(pairs: Sequence[tuple[Child, Child]]) -> Markup:
    """Return names and what they are."""
    return element("dl", *(join((element("dt", name), element("dd", value))) for name, value in pairs))


def _section(section: Section) -> Markup:
    heading = element("h2", section.title, id=f"{section.anchor}-title")
    return element("section", heading, section.content, id=section.anchor, aria_labelledby=f"{section.anchor}-title")


def content_security_policy(script: str = "") -> str:
    """Return the policy of a page that asks the network for nothing, and runs this script and no other."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"; script-src 'sha256-{digest}'" if script else ""
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:{scripts}"


def _css_variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def _resource(name: str) -> str:
    return (files("batkube.outputs.pages") / name).read_text(encoding="utf-8").strip()
