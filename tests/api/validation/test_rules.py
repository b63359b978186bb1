"""The rules of every kind validate the metadata of new objects, or declare that they do not."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from batkube.api.groups.scheme.catalogue import KINDS
from batkube.api.validation.problems import Problems

_FAULTS: list[dict[str, Any]] = [
    {"name": ""},
    {"labels": {"-": "x"}},
    {"annotations": {"-": "x"}},
    {"finalizers": ["-!"]},
    {"generation": -1},
    {"managedFields": [{"operation": "Guess"}]},
]


def notices(storage: str, fault: dict[str, Any]) -> bool:
    """Return whether a kind's rules report invalid metadata before they fail on another missing field."""
    problems, rules = Problems(), KINDS[storage].rules
    assert rules is not None
    with contextlib.suppress(KeyError, TypeError, AttributeError):
        rules.create({"metadata": {"name": "a", "namespace": "default", **fault}, "spec": {}}, problems)
    (field,) = fault
    return any(problem.field.startswith(f"metadata.{field}") for problem in problems)


@pytest.mark.parametrize("storage", sorted(storage for storage, kind in KINDS.items() if kind.rules))
def test_rules_declare_whether_they_validate_metadata(storage: str) -> None:
    rules = KINDS[storage].rules
    assert rules is not None
    assert {notices(storage, fault) for fault in _FAULTS} == {rules.covers_metadata}
