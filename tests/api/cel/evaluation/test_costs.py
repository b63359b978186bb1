"""The cost of evaluations."""

from __future__ import annotations

import contextlib
import tracemalloc

import pytest

from batkube.api.cel.evaluation.costs import CALL_LIMIT, CostExceeded
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.types import TEXT, list_type
from batkube.api.cel.values import CelError


def test_an_ordinary_rule_has_a_low_cost() -> None:
    program = CelProgram("self.all(x, x.startsWith('a'))", {"self": list_type(TEXT)})

    assert program({"self": ["a"] * 100}) is True
    assert 400 <= program.last_cost <= 1000


@pytest.mark.parametrize(
    "rule",
    [
        "self.replace('a', self).size() > 0",
        "self.replace('', self).size() > 0",
        "self.replace('a', self, 49999).size() > 0",
        "(self + self + self).split('').map(c, '%.1000f').join().format(self.split('').map(c, 1.0)) == ''",
        "[self].map(s, s + s + s + s + s).map(s, s.replace('a', s)).size() > 0",
    ],
)
def test_a_result_that_is_much_larger_than_its_arguments_is_never_allocated(rule: str) -> None:
    program = CelProgram(rule, {"self": TEXT})

    tracemalloc.start()
    with pytest.raises(CostExceeded):
        program({"self": "a" * 50_000})
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 10 * CALL_LIMIT


def test_a_replacement_costs_what_kubernetes_charges_unless_its_result_is_larger() -> None:
    program = CelProgram("self.replace('a', 'bb')", {"self": TEXT})

    assert program({"self": "a" * 100}) == "b" * 200
    assert program.last_cost == 21


@pytest.mark.parametrize(
    ("rule", "short", "long"),
    [
        ("format.dns1123Label().validate(self).hasValue()", 3 + 1 * 8, 3 + 101 * 8),
        ("cidr('10.0.0.0/8').containsIP(self)", 2 + 1, 2 + 1 + 100),
        ("cidr('10.0.0.0/8').containsCIDR(self)", 2 + 1 + 1 + 1, 2 + 1 + 1 + 1 + 100),
    ],
)
def test_functions_are_charged_by_the_size_of_their_text(rule: str, short: int, long: int) -> None:
    """Kubernetes: apiserver/pkg/cel/library/cost.go, CallCost."""
    program = CelProgram(rule, {"self": TEXT})
    costs = []
    for length in (0, 1000):
        with contextlib.suppress(CelError):
            program({"self": "a" * length})
        costs.append(program.last_cost)

    assert costs == [short, long]


def test_parts_of_a_long_address_cost_more() -> None:
    program = CelProgram("[url(self)].all(u, [1, 2, 3].all(n, u.getQuery().size() > 0))", {"self": TEXT})
    costs = []
    for length in (10, 100_000):
        assert program({"self": "https://x/?a=" + "b" * length}) is True
        costs.append(program.last_cost)

    assert costs[1] - costs[0] > 3 * 1_000 + 9_000
