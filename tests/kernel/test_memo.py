"""Memoization of functions of texts, except for long texts."""

from __future__ import annotations

from batkube.kernel.memo import memoized


def test_a_result_is_cached_until_the_cache_is_full() -> None:
    made = []

    @memoized(2)
    def length(text: str, more: int = 0) -> int:
        made.append(text)
        return len(text) + more

    assert [length("a"), length("a"), length("bb"), length("bb")] == [1, 1, 2, 2]
    assert made == ["a", "bb"]
    assert [length("ccc"), length("a")] == [3, 1]
    assert made == ["a", "bb", "ccc", "a"]


def test_calls_with_keyword_arguments_are_not_cached() -> None:
    @memoized(10)
    def length(text: str, more: int = 0) -> int:
        return len(text) + more

    assert [length("a"), length("a", more=1), length("a", more=2), length("a")] == [1, 2, 3, 1]


def test_long_texts_are_not_cached() -> None:
    made = []

    @memoized(10, longest=3)
    def length(text: str | bytes) -> int:
        made.append(text)
        return len(text)

    assert [length("abcd"), length("abcd"), length(b"abcd"), length("abc"), length("abc")] == [4, 4, 4, 3, 3]
    assert made == ["abcd", "abcd", b"abcd", "abc"]
