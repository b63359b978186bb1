"""HTML that cannot forget to escape.

A page is built of elements: text that is given is escaped, and only what `element` itself has made passes as it is. A
title, a label or a log line of a user therefore never becomes part of the page's structure, wherever it is put.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape


class Markup(str):
    """Text that is HTML already. Made by `element`, `join` and `trusted`, and by nothing else."""

    __slots__ = ()


Child = str | int | Markup | None
"""What an element may hold: text (escaped), a number, an element, or nothing."""

#: Elements without an end tag. HTML Living Standard, 13.1.2 "Elements".
_VOID = ("br", "hr", "img", "input", "link", "meta", "col", "wbr")
#: What has no place in a page: control characters, halves of surrogate pairs, what Unicode keeps for itself.
_UNDISPLAYABLE = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufdd0-\\ufdef\\ufffe\\uffff]")


def element(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """Return an element; `class_` stands for `class`, `data_x` for `data-x`, None and False leave an attribute out."""
    attribute_text = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{attribute_text}>")
    return Markup(f"<{name}{attribute_text}>{join(children)}</{name}>")


def join(children: Iterable[Child], separator: str = "") -> Markup:
    """Return the children one after the other."""
    return Markup(separator.join(_escaped_text(child) for child in children if child is not None))


def trusted(text: str) -> Markup:
    """Take a text of our own making (style, script, a drawn SVG) for HTML."""
    return Markup(text)


def _escaped_text(child: Child) -> str:
    return str(child) if isinstance(child, Markup) else displayable(escape(str(child), quote=False))


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{displayable(escape(str(value)))}"'


def displayable(text: str) -> str:
    """Return the text with a replacement character for each that no page can show."""
    return _UNDISPLAYABLE.sub("\ufffd", text)
