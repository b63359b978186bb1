"""What a label's key and value may look like, and what the real server says about one that does not.

Selectors and validation share these rules (Kubernetes: apimachinery/pkg/util/validation, IsQualifiedName and
IsValidLabelValue). Each function returns the problems as phrases, none when the text is fine.
"""

from __future__ import annotations

import re

_LENGTH_LIMIT = 63
_SUBDOMAIN_LENGTH_LIMIT = 253

_QUALIFIED_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED_NAME})?"
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_SUBDOMAIN = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"

_is_name = re.compile(_QUALIFIED_NAME).fullmatch
_is_value = re.compile(_LABEL_VALUE).fullmatch
_is_subdomain = re.compile(_DNS_SUBDOMAIN).fullmatch

_ALPHANUMERIC = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_BAD_NAME = (
    f"must consist of {_ALPHANUMERIC} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_QUALIFIED_NAME}')"
)
_BAD_VALUE = (
    f"a valid label must be an empty string or consist of {_ALPHANUMERIC} (e.g. 'MyValue',  or 'my_value',  or "
    f"'12345', regex used for validation is '{_LABEL_VALUE}')"
)
_BAD_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_DNS_SUBDOMAIN}')"
)


def label_key_problems(key: str) -> list[str]:
    """Return what is wrong with a label's key: a name, with a DNS subdomain and a slash before it or not."""
    parts = key.split("/")
    if len(parts) > 2:
        return [
            f"a qualified name {_BAD_NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    if len(parts) == 2:
        problems += _prefix_problems(parts[0])
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > _LENGTH_LIMIT:
        problems.append(f"name part must be no more than {_LENGTH_LIMIT} characters")
    if not _is_name(name):
        problems.append(f"name part {_BAD_NAME}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """Return what is wrong with a label's value; the empty one is fine."""
    problems = []
    if len(value.encode()) > _LENGTH_LIMIT:
        problems.append(f"must be no more than {_LENGTH_LIMIT} characters")
    if not _is_value(value):
        problems.append(_BAD_VALUE)
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = []
    if len(prefix.encode()) > _SUBDOMAIN_LENGTH_LIMIT:
        problems.append(f"prefix part must be no more than {_SUBDOMAIN_LENGTH_LIMIT} characters")
    if not _is_subdomain(prefix):
        problems.append(f"prefix part {_BAD_SUBDOMAIN}")
    return problems
