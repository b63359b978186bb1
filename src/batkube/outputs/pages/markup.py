"""HTML elements that always escape their text.

A page is built from elements. Text is escaped, and only the result of `element` itself is inserted unchanged. A title,
a label or a log line of a user therefore never becomes part of the page's structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML already, made only by `element`, `join` and `trusted`."""

    __slots__ = ()


Child = str | int | Markup | None
"""A child of an element: text (escaped), a number, an element, or nothing."""

#: Elements without an end tag. HTML Living Standard, 13.1.2 "Elements".
_VOID = ("br", "hr", "img", "input", "link", "meta", "col", "wbr")
#: Characters that HTML does not allow: control characters, surrogates, noncharacters.
_UNDISPLAYABLE = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufdd0-\\ufdef\\ufffe\\uffff]")


def element(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """Return an element; `class_` stands for `class`, `data_x` for `data-x`, None and False leave an attribute out."""
    attribute_text = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{attribute_text}>")
    return Markup(f"<{name}{attribute_text}>{join(children)}</{name}>")


def join(children: Iterable[Child], separator: str = "") -> Markup:
    """Return the concatenated children, with `separator` between them."""
    return Markup(separator.join(_escaped_text(child) for child in children if child is not None))


def trusted(text: str) -> Markup:
    """Mark a text of our own (style, script, a drawn SVG) as HTML."""
    return Markup(text)


def _escaped_text(child: Child) -> str:
    return str(child) if isinstance(child, Markup) else displayable(escape(str(child), quote=False))


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{displayable(escape(str(value)))}"'


def displayable(text: str) -> str:
    """Return the text with a replacement character for each character that HTML does not allow."""
    return _UNDISPLAYABLE.sub("\ufffd", text)
