"""Rules for names, keys and ports, with kube-apiserver's error messages; labels are in `kernel.label_syntax`.

Every rule takes a text and returns its errors. Requests repeat the same few names, so results are cached.

Kubernetes: apimachinery/pkg/util/validation/validation.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from batkube.text.label_syntax import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    EMPTY_ERROR,
    check_text,
    is_subdomain,
    memoized,
    regex_error,
)
from batkube.text.label_syntax import ErrorMessages as ErrorMessages
from batkube.text.label_syntax import byte_length as byte_length
from batkube.text.label_syntax import dns_subdomain as dns_subdomain
from batkube.text.label_syntax import label_value as label_value
from batkube.text.label_syntax import max_length_error as max_length_error
from batkube.text.label_syntax import qualified_name as qualified_name

NameRule = Callable[[str, bool], ErrorMessages]
"""A rule for metadata.name or, with True, for the prefix metadata.generateName."""

_LOOSE_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LOOSE_SUBDOMAIN = rf"{_LOOSE_LABEL}(\.{_LOOSE_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = rf"\*\.{DNS_SUBDOMAIN}"
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_PERCENT = "[0-9]+%"
_HEADER = "[-A-Za-z0-9]+"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_CONDITION_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"

_is_label = re.compile(DNS_LABEL).fullmatch
_is_loose_subdomain = re.compile(_LOOSE_SUBDOMAIN).fullmatch
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_is_wildcard = re.compile(_WILDCARD).fullmatch
_is_identifier = re.compile(_IDENTIFIER).fullmatch
_is_percent = re.compile(_PERCENT).fullmatch
_is_header = re.compile(_HEADER).fullmatch
_is_config_key = re.compile(_CONFIG_KEY).fullmatch
_is_port_name = re.compile("[-a-z0-9]+").fullmatch
_has_letter = re.compile("[a-z]").search
_is_http_path = re.compile(_HTTP_PATH).fullmatch
_is_condition_reason = re.compile(_CONDITION_REASON).fullmatch

_NO_DOT_DOT = "must not start with '..'"


def inclusive_range_message(low: int, high: int) -> str:
    """Return the error message for a number that is out of range."""
    return f"must be between {low} and {high}, inclusive"


_BAD_LABEL = regex_error(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character",
    DNS_LABEL,
    "my-name",
    "123-abc",
)
_BAD_LOOSE_SUBDOMAIN = regex_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
    "must start "
    "and end with an alphanumeric character",
    _LOOSE_SUBDOMAIN,
    "example.com",
)
_BAD_LABEL_1035 = regex_error(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and "
    "end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_BAD_WILDCARD = regex_error(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
    "of lower "
    "case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    _WILDCARD,
    "*.example.com",
)
_BAD_IDENTIFIER = regex_error(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_'",
    _IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_BAD_PERCENT = regex_error(
    "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%"
)
_BAD_HEADER = regex_error(
    "a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name"
)
_BAD_CONFIG_KEY = regex_error(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    _CONFIG_KEY,
    "key.name",
    "KEY_NAME",
    "key-name",
)
_BAD_CONDITION_REASON = regex_error(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters "
    "or '_,:', and must end with an alphanumeric character or '_'",
    _CONDITION_REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)
_BAD_VARIABLE = "a valid environment variable name must consist only of printable ASCII characters other than '='"


@memoized
def dns_label(text: str) -> ErrorMessages:
    """Check a lowercase RFC 1123 label."""
    bad = "must not contain dots" if is_subdomain(text) else _BAD_LABEL
    return check_text(text, 63, bool(_is_label(text)), bad)


@memoized
def dns_subdomain_with_underscores(text: str) -> ErrorMessages:
    """Check a subdomain that may contain underscores, as in the search paths of resolvers."""
    return check_text(text, 253, bool(_is_loose_subdomain(text)), _BAD_LOOSE_SUBDOMAIN)


@memoized
def dns_1035_label(text: str) -> ErrorMessages:
    """Check a label that starts with a letter, as names of services do (RFC 1035)."""
    return check_text(text, 63, bool(_is_label_1035(text)), _BAD_LABEL_1035)


@memoized
def wildcard_subdomain(text: str) -> ErrorMessages:
    """Check `*.` followed by a subdomain."""
    return check_text(text, 253, bool(_is_wildcard(text)), _BAD_WILDCARD)


@memoized
def config_key(text: str) -> ErrorMessages:
    """Check a key of a ConfigMap or Secret, which may become a file name."""
    return check_text(text, 253, bool(_is_config_key(text)), _BAD_CONFIG_KEY) + _parent_directory_problems(text)


def _parent_directory_problems(text: str) -> ErrorMessages:
    if text in (".", ".."):
        return (f"must not be '{text}'",)
    return (_NO_DOT_DOT,) if text.startswith("..") else ()


@memoized
def environment_variable(text: str) -> ErrorMessages:
    """Check the name of an environment variable (relaxed rules, which are GA since v1.34)."""
    if not text:
        return (f"environment variable name {EMPTY_ERROR}",)
    return () if all(" " <= char <= "~" and char != "=" for char in text) else (_BAD_VARIABLE,)


@memoized
def port_name(text: str) -> ErrorMessages:
    """Check the name of a port (RFC 6335)."""
    wrong = []
    if byte_length(text) > 15:
        wrong.append(max_length_error(15))
    if not _is_port_name(text):
        wrong.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(text):
        wrong.append("must contain at least one letter (a-z)")
    if "--" in text:
        wrong.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        wrong.append("must not begin or end with a hyphen")
    return tuple(wrong)


def c_identifier(text: str) -> ErrorMessages:
    """Check a C identifier."""
    return () if _is_identifier(text) else (_BAD_IDENTIFIER,)


def percentage(text: str) -> ErrorMessages:
    """Check digits and a percent sign."""
    return () if _is_percent(text) else (_BAD_PERCENT,)


def http_header(text: str) -> ErrorMessages:
    """Check the name of an HTTP header."""
    return () if _is_header(text) else (_BAD_HEADER,)


def http_path(text: str) -> ErrorMessages:
    """Check the path in a domain-prefixed path, such as a finalizer or a signer name."""
    return () if _is_http_path(text) else (regex_error("Invalid path", _HTTP_PATH),)


def condition_reason(text: str) -> ErrorMessages:
    """Check the reason of a metav1.Condition."""
    return () if _is_condition_reason(text) else (_BAD_CONDITION_REASON,)


def port_number(port: int) -> ErrorMessages:
    """Check a TCP, UDP or SCTP port."""
    return () if 1 <= port <= 65535 else (inclusive_range_message(1, 65535),)


def user_or_group_id(number: int) -> ErrorMessages:
    """Check a user or group ID."""
    return () if 0 <= number <= 2**31 - 1 else (inclusive_range_message(0, 2**31 - 1),)


def path_segment(name: str, prefix: bool) -> ErrorMessages:
    """Check that a name is a valid path segment of a URL, as all names must be (path.ValidatePathSegmentName)."""
    if not prefix and name in (".", ".."):
        return (f"may not be '{name}'",)
    if "/" not in name and "%" not in name:
        return ()
    return tuple(f"may not contain '{char}'" for char in "/%" if char in name)


def _mask_trailing_dash(name: str, prefix: bool) -> str:
    """Replace a prefix's trailing dash, since characters will follow it (Kubernetes: maskTrailingDash)."""
    return name[:-2] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def subdomain_name(name: str, prefix: bool) -> ErrorMessages:
    """The name rule of most kinds."""
    return dns_subdomain(_mask_trailing_dash(name, prefix))


def label_name(name: str, prefix: bool) -> ErrorMessages:
    """The name rule of namespaces."""
    return dns_label(_mask_trailing_dash(name, prefix))


def label_1035_name(name: str, prefix: bool) -> ErrorMessages:
    """The name rule of services."""
    return dns_1035_label(_mask_trailing_dash(name, prefix))
