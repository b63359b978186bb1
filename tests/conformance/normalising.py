"""Texts that comparisons ignore, because they differ between two servers, except for their form."""

from __future__ import annotations

import re
from typing import NamedTuple

IGNORED_KEYS = frozenset({"storageVersionHash", "serverAddress"})
UNTOLD_KEYS_OF_VERSION = frozenset({"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"})
"""Keys of /version that describe a build."""

_TOKEN = re.compile(
    r"(?P<uid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
    r"|(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)"
    r"|(?P<version>(?<=resource version: )\d+(?: \(\d+\))?|(?<=current: )\d+|(?<=in the precondition \()\d+"
    r"|(?<=in record \()\d+|(?<=ResourceVersion in precondition: )\d+|(?<=ResourceVersion in object meta: )\d+"
    r'|(?<=resourceVersion: ")\d+)'
)
_AGE = re.compile(r"(?:(?:\d+ \()?(?:\d+[smhdy])+(?: ago\))?(?: \(x\d+ over .*\))?|<unknown>|<invalid>)$")
_GENERATED = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}$")
_IPV4 = re.compile(r"\d+\.\d+\.\d+\.\d+$")
_IPV6 = re.compile(r"[0-9a-f:]+$")
_PLAIN = (
    (re.compile(r"\?hash=[0-9A-F]+"), "?hash="),
    (re.compile(r"kube-api-access-[a-z0-9]{5}\b"), "kube-api-access-"),
    (re.compile(r'Invalid value: "\{.*\}": ', re.DOTALL), 'Invalid value: "{object}": '),
    (re.compile(r"goroutine .*", re.DOTALL), "goroutine"),
    # The descriptions of columns in a table in YAML, which Batkube has only if Kubernetes' source is available.
    (re.compile(r"^- description: .*?\n  format:", re.DOTALL | re.MULTILINE), "- format:"),
    # An age in a table in YAML: a second may pass between the creation and the request.
    (re.compile(r"^( *- )\d+s$", re.MULTILINE), r"\1age"),
)


class Token(NamedTuple):
    """A part of a text that refers to something specific to the server."""

    kind: str
    text: str


def tokens(text: str) -> tuple[str, list[Token]]:
    """Return `text` without its tokens, and the tokens."""
    found = [Token(match.lastgroup or "", match.group()) for match in _TOKEN.finditer(text)]
    return (_TOKEN.sub("\0", text) if found else text), found


def plain_text(text: str) -> str:
    """Return `text` without the parts that are not compared at all."""
    for pattern, replacement in _PLAIN:
        text = pattern.sub(replacement, text)
    return text


def is_age(text: str) -> bool:
    """Return whether a table's cell contains an age."""
    return _AGE.match(text) is not None


def is_ip(text: str) -> bool:
    """Return whether `text` is an address."""
    return is_ipv4(text) or _IPV6.match(text) is not None


def is_ipv4(text: str) -> bool:
    """Return whether `text` is an address of four numbers, as a table's cell may show."""
    return _IPV4.match(text) is not None


def is_generated_from(prefix: object, name: object) -> bool:
    """Return whether a server made `name` from `generateName: prefix`."""
    if not (isinstance(prefix, str) and isinstance(name, str)):
        return False
    return name.startswith(prefix) and _GENERATED.match(name[len(prefix) :]) is not None
