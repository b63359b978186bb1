"""The frame of a report: one HTML file that makes no network requests and is readable without its script.

The page's Content Security Policy (W3C) forbids every request and every script but ours, so that a report may be
mailed, archived and opened anywhere. Colours are CSS variables: the page and its figures follow the reader's light or
dark setting. The script only adds sorting and filtering to tables; without it they are plain tables.
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

#: Identifies pages of Batkube: at a default path, only those are replaced.
_GENERATOR = '<meta name="generator" content="Batkube">'
_HEAD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report, linked from the table of contents by its anchor."""

    anchor: str
    title: str
    content: Markup


def render_page(title: str, lead: Sequence[Child], sections: Sequence[Section]) -> str:
    """Return the whole page: title, lead, table of contents and sections."""
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
    """Write a page, replacing an older one atomically."""
    write_derived_file(path, content.encode())
    return path


def default_page_path(folder: Path) -> Path:
    """Return the default path of a folder's page. Raises InputError if a file is there that Batkube did not write."""
    path = folder / "report.html"
    if path.is_file() and _GENERATOR.encode() not in path.read_bytes()[:_HEAD_BYTES]:
        raise InputError(path, problem="exists and is not a report of Batkube", remedy="choose another path with -o")
    return path


def paragraph(*children: Child, class_: str | None = None) -> Markup:
    """Return a paragraph."""
    return element("p", *children, class_=class_)


def collapsible(summary: Child, *children: Child, is_open: bool = False, class_: str | None = None) -> Markup:
    """Return content that is shown when its summary is clicked, also without a script."""
    return element("details", element("summary", summary), *children, open=is_open, class_=class_)


def collapsible_if_long(summary: Child, content: Markup, *, count: int, few: int) -> Markup:
    """Return short content as it is, and long content collapsed behind its summary."""
    return content if count <= few else collapsible(summary, content)


def verbatim(text: str) -> Markup:
    """Return program text or log lines as preformatted text."""
    return element("pre", text, tabindex=0)


def definition_list(pairs: Sequence[tuple[Child, Child]]) -> Markup:
    """Return a list of terms and their values."""
    return element("dl", *(join((element("dt", name), element("dd", value))) for name, value in pairs))


def _section(section: Section) -> Markup:
    heading = element("h2", section.title, id=f"{section.anchor}-title")
    return element("section", heading, section.content, id=section.anchor, aria_labelledby=f"{section.anchor}-title")


def content_security_policy(script: str = "") -> str:
    """Return the policy of a page that makes no requests, and runs only this script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"; script-src 'sha256-{digest}'" if script else ""
    return f"default-src 'none'; style-src 'unsafe-inline'; img-src data:{scripts}"


def _css_variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def _resource(name: str) -> str:
    return (files("batkube.outputs.pages") / name).read_text(encoding="utf-8").strip()
