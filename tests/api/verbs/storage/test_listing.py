"""Lists: limits and continue tokens, compared with a real server."""

from __future__ import annotations

import pytest
from tests.api.verbs.storage.config_maps import CONFIG_MAPS, config_map

from conformance.direct import Answer, Direct


def names(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


def test_the_next_page_may_be_empty_with_a_selector(direct: Direct) -> None:
    """The real server sees that there are more keys, not whether any of them is chosen."""
    for name, color in (("a", "red"), ("b", "blue")):
        direct.ask("POST", CONFIG_MAPS, config_map(name, labels={"color": color}))

    first = direct.ask("GET", CONFIG_MAPS, query={"limit": "1", "labelSelector": "color=red"})
    rest = {"limit": "1", "labelSelector": "color=red", "continue": first.body["metadata"]["continue"]}

    assert names(first) == ["a"]
    assert names(direct.ask("GET", CONFIG_MAPS, query=rest)) == []


def test_a_limit_applies_to_lists_not_older_than_a_version(direct: Direct) -> None:
    for name in "abc":
        direct.ask("POST", CONFIG_MAPS, config_map(name))
    query = {"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan", "limit": "2"}

    assert names(direct.ask("GET", CONFIG_MAPS, query=query)) == ["a", "b"]


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        ("%%%", "illegal base64 data at input byte 0"),
        ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiIn0", "encoded start key empty (version meta.k8s.io/v1)"),
        ("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vYyJ9", "../c"),
    ],
)
def test_a_forged_continue_token_is_rejected(direct: Direct, token: str, problem: str) -> None:
    answer = direct.ask("GET", CONFIG_MAPS, query={"continue": token})

    assert answer.status == 400
    assert answer.body["message"] == f"invalid continue token: continue key is not valid: {problem}"


def test_pages_have_all_objects_of_their_version_while_objects_come_and_go(direct: Direct) -> None:
    """The keys are sorted once, at the first list; later changes are inserted."""
    for number in range(0, 40, 2):
        direct.ask("POST", CONFIG_MAPS, config_map(f"m{number:02}"))
    first = direct.ask("GET", CONFIG_MAPS, query={"limit": "5"})
    direct.ask("POST", CONFIG_MAPS, config_map("m11"))
    direct.ask("DELETE", f"{CONFIG_MAPS}/m12")

    rest = direct.ask("GET", CONFIG_MAPS, query={"limit": "50", "continue": first.body["metadata"]["continue"]})
    now = direct.ask("GET", CONFIG_MAPS, query={"limit": "8"})

    assert first.body["metadata"]["remainingItemCount"] == 15
    assert names(first) + names(rest) == [f"m{number:02}" for number in range(0, 40, 2)]
    assert names(now) == ["m00", "m02", "m04", "m06", "m08", "m10", "m11", "m14"]
    assert now.body["metadata"]["remainingItemCount"] == 12
