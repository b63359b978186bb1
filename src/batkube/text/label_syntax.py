"""Syntax of label keys and values, with the error messages of kube-apiserver.

Selectors and validation share these rules (Kubernetes: apimachinery/pkg/util/validation, IsQualifiedName and
IsValidLabelValue). Every rule takes a text and returns its errors. Results are cached, because every request repeats
the same few texts.
"""

from __future__ import annotations

import re

from batkube.kernel import memo

ErrorMessages = tuple[str, ...]
"""Errors of a text; empty if it is valid."""

memoized = memo.memoized(2048)

DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
DNS_SUBDOMAIN = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"

is_subdomain = re.compile(DNS_SUBDOMAIN).fullmatch
_is_qualified = re.compile(_QUALIFIED).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch

EMPTY_ERROR = "must be non-empty"


def byte_length(text: str) -> int:
    """Return the length in bytes, as Go's len does."""
    return len(text) if text.isascii() else len(text.encode())


def regex_error(rule: str, pattern: str, *examples: str) -> str:
    """Format a rule with examples and its pattern, as Kubernetes' RegexError does."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    samples = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {samples}regex used for validation is '{pattern}')"


def max_length_error(length: int) -> str:
    """Return the error for a text that is too long, as Kubernetes' MaxLenError does."""
    return f"must be no more than {length} characters"


_SUBDOMAIN_ERROR = regex_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character",
    DNS_SUBDOMAIN,
    "example.com",
)
_QUALIFIED_ERROR = regex_error(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_ERROR = regex_error(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)


def check_text(text: str, limit: int, good: bool, bad: str) -> ErrorMessages:
    """Return the errors of a text: one if it exceeds `limit` bytes, and `bad` unless it is `good`."""
    if good and len(text) <= limit:
        return ()
    too_long = (max_length_error(limit),) if byte_length(text) > limit else ()
    return too_long if good else (*too_long, bad)


@memoized
def dns_subdomain(text: str) -> ErrorMessages:
    """Check a lowercase RFC 1123 subdomain."""
    return check_text(text, 253, bool(is_subdomain(text)), _SUBDOMAIN_ERROR)


@memoized
def qualified_name(text: str) -> ErrorMessages:
    """Check a qualified name, such as a label key: a name with an optional subdomain and `/` before it."""
    prefix, slash, name = text.rpartition("/")
    errors: list[str] = []
    if "/" in prefix:
        return (
            f"a qualified name {_QUALIFIED_ERROR} with an optional DNS subdomain prefix and '/' "
            "(e.g. 'example.com/MyName')",
        )
    if slash and not prefix:
        errors.append(f"prefix part {EMPTY_ERROR}")
    elif slash:
        errors.extend(f"prefix part {problem}" for problem in dns_subdomain(prefix))
    if not name:
        errors.append(f"name part {EMPTY_ERROR}")
    elif byte_length(name) > 63:
        errors.append(f"name part {max_length_error(63)}")
    if not _is_qualified(name):
        errors.append(f"name part {_QUALIFIED_ERROR}")
    return tuple(errors)


@memoized
def label_value(text: str) -> ErrorMessages:
    """Check the value of a label."""
    return check_text(text, 63, bool(_is_label_value(text)), _LABEL_VALUE_ERROR)
