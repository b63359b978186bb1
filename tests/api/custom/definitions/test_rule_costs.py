"""Definitions whose rules are estimated to cost too much, compared with the error messages of kube-apiserver.

The recorded answers are those of apiextensions-apiserver 0.34.4 (scripts/record_rule_costs).
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from batkube.api.custom.definitions.strategy import set_definition_defaults, validate_definition
from conformance.direct import Answer, Direct

RECORD: dict[str, Any] = json.loads(Path(__file__).with_name("rule_costs.json").read_text(encoding="utf-8"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEAR = "self.all(x, self.all(y, x == y))"


def definition(schema: dict[str, Any], versions: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {
                    "name": f"v{number + 1}",
                    "served": True,
                    "storage": number == 0,
                    "schema": {"openAPIV3Schema": schema},
                }
                for number in range(versions)
            ],
        },
    }


def with_rule(schema: dict[str, Any], rule: str = DEAR) -> dict[str, Any]:
    held = {**schema, "x-kubernetes-validations": [{"rule": rule}]}
    return {"type": "object", "properties": {"spec": held}}


def texts(**limits: int) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string", "maxLength": 10}, **limits}


def errors_of(answer: Answer) -> list[str]:
    if answer.status < 300:
        return []
    return [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]


@pytest.mark.parametrize("number", range(len(RECORD["definitions"])))
def test_a_rejected_definition_gets_the_errors_of_kube_apiserver(number: int) -> None:
    case = RECORD["definitions"][number]

    answer = Direct().ask("POST", DEFINITIONS, definition(case["schema"], case["versions"]))

    assert errors_of(answer) == case["errors"]
    assert answer.status == (422 if case["errors"] else 201)


def test_an_unchanged_schema_keeps_rules_above_the_cost_limit() -> None:
    """An object that was stored before the limits existed can still be updated."""
    before = definition(with_rule(texts(maxItems=1300)))
    before["metadata"]["resourceVersion"] = "1"
    set_definition_defaults(before)
    after = copy.deepcopy(before)
    after["spec"]["names"]["shortNames"] = ["th"]
    dearer = copy.deepcopy(after)
    dearer["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = with_rule(texts(maxItems=1301))

    assert validate_definition(after, before) == []
    assert "exceeds budget by factor of" in validate_definition(dearer, before)[0].message
