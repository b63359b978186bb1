"""Cost estimates of rules, compared with the numbers and error messages of Kubernetes' own libraries.

The recorded answers are those of apiextensions-apiserver 0.34.4 and cel-go 0.26.0 (scripts/record_rule_costs).
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.api.cel.estimation.sizes import SIZE_MAX, SizeLimits
from batkube.api.cel.evaluation.costs import CostExceeded
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.types import TEXT, list_type
from batkube.api.custom.definitions.strategy import set_definition_defaults, validate_definition
from batkube.api.custom.instances.cel_rules import rule_scope
from batkube.api.custom.schemas.size_limits import REQUEST_BYTES, cardinality_max, size_limits
from batkube.api.custom.schemas.structural import parse_structural
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


def told(answer: Answer) -> list[str]:
    if answer.status < 300:
        return []
    return [f"{cause['field']}: {cause['message']}" for cause in answer.body["details"]["causes"]]


@pytest.mark.parametrize("rule", RECORD["costs"])
def test_cost_estimates_equal_those_of_cel_go(rule: str) -> None:
    schema = parse_structural(RECORD["schema"])
    scope = rule_scope(schema, is_resource=True, optional_old=False)
    extent = size_limits(schema, is_resource=True)
    assert scope is not None
    assert extent is not None

    assert CelProgram(rule, scope).cost_max(extent) == RECORD["costs"][rule]


@pytest.mark.parametrize("number", range(len(RECORD["definitions"])))
def test_a_rejected_definition_gets_the_errors_of_kube_apiserver(number: int) -> None:
    case = RECORD["definitions"][number]

    answer = Direct().ask("POST", DEFINITIONS, definition(case["schema"], case["versions"]))

    assert told(answer) == case["errors"]
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


def test_the_request_size_bounds_values_without_schema_limits() -> None:
    text = size_limits(parse_structural({"type": "string"}))
    numbers = size_limits(parse_structural({"type": "array", "items": {"type": "integer"}}))

    assert text is not None
    assert numbers is not None
    assert text.elements_max == REQUEST_BYTES - 2
    assert numbers.elements_max == (REQUEST_BYTES - 2) // 2
    assert cardinality_max(text) == REQUEST_BYTES // 3


@given(st.lists(st.text(max_size=10), max_size=20))
def test_no_evaluation_costs_more_than_the_estimate(values: list[str]) -> None:
    """Objects are as large as the schema allows, or smaller."""
    extent = SizeLimits(20, 2, SizeLimits(40, 2))
    for rule in (DEAR, "self.map(x, x + 'a').exists(y, y == 'b')", "self.filter(x, x.contains('a')).size() > 3"):
        program = CelProgram(rule, {"self": list_type(TEXT)})
        try:
            program({"self": values})
        except CostExceeded:
            pytest.fail("beyond a call's limit")
        assert program.last_cost <= program.cost_max(extent)


def test_an_unbounded_expression_has_the_maximum_cost() -> None:
    rule = "".join(f"self.all(x{level}, " for level in range(12)) + "true" + ")" * 12

    assert (
        CelProgram(rule, {"self": list_type(TEXT)}).cost_max(SizeLimits(REQUEST_BYTES, 2, SizeLimits(40, 2)))
        == SIZE_MAX
    )
