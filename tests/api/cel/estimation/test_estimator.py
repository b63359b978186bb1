"""Cost estimates of expressions, compared with the numbers of cel-go.

The recorded numbers are those of cel-go 0.26.0 (scripts/record_rule_costs).
"""

from __future__ import annotations

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
from batkube.api.custom.instances.cel_rules import rule_scope
from batkube.api.custom.schemas.size_limits import REQUEST_BYTES, size_limits
from batkube.api.custom.schemas.structural import parse_structural

FILE = Path(__file__).parents[2] / "custom" / "definitions" / "rule_costs.json"
RECORD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
DEAR = "self.all(x, self.all(y, x == y))"


@pytest.mark.parametrize("rule", RECORD["costs"])
def test_cost_estimates_equal_those_of_cel_go(rule: str) -> None:
    schema = parse_structural(RECORD["schema"])
    scope = rule_scope(schema, is_resource=True, optional_old=False)
    extent = size_limits(schema, is_resource=True)
    assert scope is not None
    assert extent is not None

    assert CelProgram(rule, scope).cost_max(extent) == RECORD["costs"][rule]


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
