"""Idsets and hostlists in Flux's notation (RFC 22 and RFC 29)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.graph.idsets import decode_hostlist, decode_idset, encode_hostlist, encode_idset, split_host


@pytest.mark.parametrize(
    ("text", "ids"),
    [("", []), ("7", [7]), ("0-3,7", [0, 1, 2, 3, 7]), ("[5,1-2]", [1, 2, 5]), ("3,3", [3]), ("007", [7])],
)
def test_idsets_are_decoded_in_ascending_order(text: str, ids: list[int]) -> None:
    assert decode_idset(text) == ids


@pytest.mark.parametrize("text", ["a", "3-1", "1-", "-1", "1 2", "0-4000000000"])
def test_invalid_idsets_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a range of ids|has more than"):
        decode_idset(text)


@given(st.sets(st.integers(0, 200)))
def test_an_idset_is_decoded_to_what_was_encoded(ids: set[int]) -> None:
    text = encode_idset(ids)

    assert decode_idset(text) == sorted(ids)
    assert text.count(",") < max(1, len(ids))


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node[0-2,7]", ["node0", "node1", "node2", "node7"]),
        ("a,b[3,1],c", ["a", "b3", "b1", "c"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("rack[1-2]-a", ["rack1-a", "rack2-a"]),
    ],
)
def test_hostlists_keep_their_order_and_their_zeros(text: str, hosts: list[str]) -> None:
    assert decode_hostlist(text) == hosts


@pytest.mark.parametrize("text", ["n[1", "n[a]", "n[2-1]", "n[0-40000000]", "n[1][2]"])
def test_invalid_hostlists_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a|has more than"):
        decode_hostlist(text)


@given(st.lists(st.from_regex(r"[a-z]{1,2}(0|[1-9][0-9]?|0[0-9])?", fullmatch=True)))
def test_a_hostlist_is_decoded_to_what_was_encoded(hosts: list[str]) -> None:
    assert decode_hostlist(encode_hostlist(hosts)) == hosts


def test_neighbours_with_consecutive_numbers_share_brackets() -> None:
    assert encode_hostlist(["n1", "n2", "n3", "n5", "m5"]) == "n[1-3,5],m5"


def test_the_number_of_a_host_is_at_its_end() -> None:
    assert (split_host("rack1-n07"), split_host("login")) == (("rack1-n", "07"), ("login", ""))
