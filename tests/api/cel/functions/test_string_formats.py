"""Named string formats."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.api.cel.functions.string_formats import find_format_check
from batkube.api.custom.instances.value_validation import validate_value
from batkube.api.custom.schemas.structural import parse_structural


def messages(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    return [(error.field, error.message) for error in validate_value(parse_structural(schema), value)]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", ["2024-01-01T00:00:00Z", "2024-01-01t00:00:00.5+01:00"], ["2024-01-01", "2024-02-30T00:00:00Z"]),
        ("date", ["2024-02-29"], ["2023-02-29", "2024-1-1"]),
        ("duration", ["1h30m", "5 days", "0"], ["1", "2 foo", ""]),
        ("ipv4", ["1.2.3.4", "01.2.3.4"], ["256.1.1.1", "::1"]),
        ("ipv6", ["::1"], ["1.2.3.4", "fe80::1%eth0"]),
        ("cidr", ["10.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33"]),
        ("mac", ["01:23:45:67:89:ab", "0123.4567.89ab"], ["01:23:45:67:89"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["x"]),
        ("isbn13", ["978-0321751041"], ["978-0321751042"]),
        ("creditcard", ["4111 1111 1111 1111"], ["4111111111111112"]),
        ("byte", ["YWJj"], ["YWJ", ""]),
        ("hostname", ["a.b.com", "a"], ["-a", "a_b"]),
        ("email", ["a@b.c", "A B <a@b.c>"], ["a", "a@"]),
        ("uri", ["http://a.b/c", "/x"], ["a", "http://a b"]),
    ],
)
def test_formats_accept_the_same_strings_as_kube_apiserver(name: str, good: list[str], bad: list[str]) -> None:
    check = find_format_check(name)

    assert check is not None
    assert [text for text in good if not check(text)] == []
    assert [text for text in bad if check(text)] == []


def test_an_unknown_format_is_ignored() -> None:
    assert find_format_check("bogus") is None
    assert messages({"type": "string", "format": "bogus"}, "x") == []
