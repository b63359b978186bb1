"""Regular expressions in the syntax of Go."""

from __future__ import annotations

import pytest

from batkube.api.cel.functions.regex import BadPattern, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "missing closing ): `(`"),
        ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
        ("[a", "missing closing ]: `[a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a)", "unexpected ): `a)`"),
        ("(a)\\1", "invalid escape sequence: `\\1`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
    ],
)
def test_an_invalid_pattern_is_rejected_with_the_error_of_go(pattern: str, problem: str) -> None:
    with pytest.raises(BadPattern) as caught:
        compile_pattern(pattern)

    assert str(caught.value) == f"error parsing regexp: {problem}"


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a$", "a\n", False),
        (r"^\d+$", "\u0663", False),
        ("^[[:alpha:]_]+$", "ab_", True),
        ("a(?i)b", "aB", True),
        (r"^\p{Greek}+$", "αβγ", True),
        ("^(a+)+$", "a" * 5000 + "b", False),
        (r"^a\z", "a", True),
        (r"\Qa.b\E", "axb", False),
        ("(?P<x>a)(?<y>b)", "ab", True),
    ],
)
def test_patterns_match_as_in_go(pattern: str, text: str, matches: bool) -> None:
    assert (compile_pattern(pattern).search(text) is not None) is matches
