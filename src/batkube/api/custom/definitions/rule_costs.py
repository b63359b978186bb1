"""What the rules of a definition may cost by estimate, each of them and all together, and what is said of too much.

A rule is judged once for each value that its schema describes, so its estimate is multiplied by how many of them one
object can have (Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go).
"""

from __future__ import annotations

from batkube.api.cel.estimation.sizes import SizeLimits, capped
from batkube.api.custom.schemas.size_limits import cardinality_max
from batkube.api.custom.schemas.structural import RawSchema
from batkube.api.validation.problems import Problems

RULE_LIMIT = 10_000_000
"""What one rule may cost by estimate (StaticEstimatedCostLimit)."""

SCHEMA_LIMIT = 100_000_000
"""What all rules of a schema may cost together (StaticEstimatedCRDCostLimit)."""

#: How many rules are named when all together cost too much, and from which part of the limit on.
_REPORTED_MAX = 4
_REPORTED_COST_MIN = SCHEMA_LIMIT // 100


def elements_max(raw: RawSchema) -> int | None:
    """Return how many values there can be below one value of a schema; None if nothing says so."""
    kind = raw.get("type")
    if kind == "array":
        most = raw.get("maxItems")
    elif kind == "object" and raw.get("additionalProperties") is not None:
        most = raw.get("maxProperties")
    else:
        return 1
    return None if most is None else max(0, most)


def child_cardinality(cardinality: int | None, raw: RawSchema) -> int | None:
    """Return how many values there can be one step further down."""
    most = elements_max(raw)
    return None if cardinality is None or most is None else capped(cardinality * most)


def total_cost(cost: int, cardinality: int | None, extent: SizeLimits) -> int:
    """Return what a rule costs for all values that one object can have."""
    return capped(cost * (cardinality_max(extent) if cardinality is None else cardinality))


def cost_message(subject: str, cost: int, limit: int) -> str:
    """Return what is said of a cost that is too high."""
    factor = float(cost) / float(limit)
    told = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    if factor > 100:
        told = "more than 100x"
    remedy = (
        "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings "
        "are declared"
    )
    return f"{subject} exceeds budget by factor of {told} ({remedy})"


class CostBudget:
    """The estimates of one schema's rules, added up while they are checked."""

    def __init__(self, problems: Problems, *, is_unchanged: bool) -> None:
        self._problems = problems
        #: A schema that is as it was keeps rules that are too dear each, but not if they are so together.
        self._is_unchanged = is_unchanged
        self._total = 0
        self._most_expensive: list[tuple[int, str]] = []

    def add_rule(self, subject: str, cost: int, path: str) -> None:
        """Count an expression, and refuse it if it is too dear by itself."""
        if cost > RULE_LIMIT and not self._is_unchanged:
            self._problems.forbidden(path, cost_message(f"estimated {subject} cost", cost, RULE_LIMIT))
        self._total = capped(self._total + cost)
        if cost >= _REPORTED_COST_MIN:
            self._most_expensive = sorted([*self._most_expensive, (cost, path)], key=lambda each: -each[0])[
                :_REPORTED_MAX
            ]

    def check_total(self, path: str) -> None:
        """Refuse the schema if its rules are too dear together; the dearest are named."""
        if self._total <= SCHEMA_LIMIT:
            return
        told = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        for _, place in self._most_expensive:
            self._problems.forbidden(place, told)
        subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        self._problems.forbidden(path, cost_message(subject, self._total, SCHEMA_LIMIT))
