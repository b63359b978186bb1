"""Sorted keys equal a sorted list after any changes."""

from __future__ import annotations

import random

from batkube.cluster.sorted_keys import SortedKeys


def between(keys: SortedKeys[str], start: str, end: str | None) -> list[str]:
    return [key for block in keys.blocks(start, end) for key in block]


def test_keys_are_in_order_after_any_changes() -> None:
    rng = random.Random(1)
    expected = {str(rng.randrange(100_000)) for _ in range(3_000)}
    keys = SortedKeys(expected)

    for number in range(40_000):
        # Phases in which the set grows to thousands of keys, and shrinks to none.
        if expected and rng.random() < (0.3 if number // 8_000 % 2 else 0.9):
            key = rng.choice(tuple(expected)) if number % 100 == 0 else next(iter(expected))
            expected.remove(key)
            keys.remove(key)
        else:
            key = str(rng.randrange(100_000))
            if key not in expected:
                expected.add(key)
                keys.add(key)
        if number % 500 == 0:
            start, end = sorted((str(rng.randrange(100_000)), str(rng.randrange(100_000))))
            assert between(keys, "", None) == sorted(expected)
            assert between(keys, start, end) == sorted(key for key in expected if start <= key < end)
            assert keys.count(start, end) == sum(start <= key < end for key in expected)


def test_empty_sets_have_no_keys() -> None:
    keys = SortedKeys(["a"])
    keys.remove("a")

    assert between(keys, "", None) == []
    assert keys.count("a", None) == 0


def test_blocks_stay_long_when_keys_are_removed_at_random() -> None:
    """Otherwise a page would be read from many short blocks."""
    keys = SortedKeys(f"{number:06}" for number in range(100_000))

    for number in range(100_000):
        if number % 100:
            keys.remove(f"{number:06}")

    assert len(list(keys.blocks("", None))) <= 10
    assert keys.count("", None) == 1_000
