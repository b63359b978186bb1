"""What a label's key and value may look like, and what the real server says about one that does not.

Selectors and validation share these rules (Kubernetes: apimachinery/pkg/util/validation, IsQualifiedName and
IsValidLabelValue). Every rule takes a text and returns what is wrong with it: nothing, for a good one. The same few
texts come again with every request, so verdicts are remembered.
"""

from __future__ import annotations

import re

from batkube.kernel import remembering

Verdict = tuple[str, ...]
"""What is wrong with a text; empty if nothing is."""

remembered = remembering.remembered(2048)

DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_SUBDOMAIN = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"

is_subdomain = re.compile(DNS_SUBDOMAIN).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch

NON_EMPTY = "must be non-empty"


def size(text: str) -> int:
    """Return the bytes of a text, which is what Go calls its length."""
    return len(text) if text.isascii() else len(text.encode())


def explained(rule: str, pattern: str, *examples: str) -> str:
    """Write a rule with examples and its pattern, as Kubernetes' RegexError does."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    samples = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {samples}regex used for validation is '{pattern}')"


def at_most(length: int) -> str:
    """Say that a text is too long."""
    return f"must be no more than {length} characters"


_BAD_SUBDOMAIN = explained(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character",
    DNS_SUBDOMAIN,
    "example.com",
)
_BAD_QUALIFIED = explained(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_BAD_LABEL_VALUE = explained(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def judged(text: str, limit: int, good: bool, bad: str) -> Verdict:
    """Return the verdict on a text of which at most `limit` bytes are fine and `bad` is to be said otherwise."""
    if good and len(text) <= limit:
        return ()
    too_long = (at_most(limit),) if size(text) > limit else ()
    return too_long if good else (*too_long, bad)


@remembered
def dns_subdomain(text: str) -> Verdict:
    """A lowercase RFC 1123 subdomain."""
    return judged(text, 253, bool(is_subdomain(text)), _BAD_SUBDOMAIN)


@remembered
def qualified_name(text: str) -> Verdict:
    """A label key or the like: a name with an optional subdomain and `/` before it."""
    prefix, slash, name = text.rpartition("/")
    wrong: list[str] = []
    if "/" in prefix:
        return (
            f"a qualified name {_BAD_QUALIFIED} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    if slash and not prefix:
        wrong.append(f"prefix part {NON_EMPTY}")
    elif slash:
        wrong.extend(f"prefix part {problem}" for problem in dns_subdomain(prefix))
    if not name:
        wrong.append(f"name part {NON_EMPTY}")
    elif size(name) > 63:
        wrong.append(f"name part {at_most(63)}")
    if not _is_qualified(name):
        wrong.append(f"name part {_BAD_QUALIFIED}")
    return tuple(wrong)


@remembered
def label_value(text: str) -> Verdict:
    """The value of a label."""
    return judged(text, 63, bool(_is_label_value(text)), _BAD_LABEL_VALUE)
