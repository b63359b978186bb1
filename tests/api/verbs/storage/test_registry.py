"""Names that are generated or already exist."""

from __future__ import annotations

import pytest
from tests.api.verbs.storage.config_maps import CONFIG_MAPS, config_map

from batkube.api.verbs.storage import registry
from conformance.direct import Answer, Direct


def names(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


def test_a_conflict_of_an_explicit_name_beside_generate_name_is_retryable(direct: Direct) -> None:
    direct.ask("POST", CONFIG_MAPS, config_map("a"))
    answer = direct.ask("POST", CONFIG_MAPS, config_map("a", generateName="a-"))

    assert answer.status == 409
    assert answer.body["details"]["retryAfterSeconds"] == 1


def test_a_generated_name_that_is_taken_is_retried_a_few_times(direct: Direct, monkeypatch: pytest.MonkeyPatch) -> None:
    generated = {"metadata": {"generateName": "a-"}}
    monkeypatch.setattr(registry, "_NAME_LETTERS", "bc")  # which make 32 names
    names = [direct.ask("POST", CONFIG_MAPS, generated).body["metadata"]["name"] for _ in range(16)]
    monkeypatch.setattr(registry, "_NAME_LETTERS", names[0][-1])
    taken = [direct.ask("POST", CONFIG_MAPS, generated).status for _ in range(2)]

    assert len(set(names)) == 16
    assert taken[-1] == 409
