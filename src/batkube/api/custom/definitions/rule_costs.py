"""Limits on the estimated cost of a definition's CEL rules, and their error messages.

A rule is evaluated once for each value that its schema describes, so its estimate is multiplied by the maximum number
of these values in one object.

Kubernetes: apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go.
"""

from __future__ import annotations

from batkube.api.cel.estimation.sizes import SizeLimits, capped
from batkube.api.custom.schemas.size_limits import cardinality_max
from batkube.api.custom.schemas.structural import RawSchema
from batkube.api.validation.problems import Problems

RULE_LIMIT = 10_000_000
"""The maximum estimated cost of one rule (StaticEstimatedCostLimit)."""

SCHEMA_LIMIT = 100_000_000
"""The maximum estimated cost of all rules of a schema (StaticEstimatedCRDCostLimit)."""

#: How many rules the error names if all together cost too much, and from which share of the limit on.
_REPORTED_MAX = 4
_REPORTED_COST_MIN = SCHEMA_LIMIT // 100


def elements_max(raw: RawSchema) -> int | None:
    """Return the maximum number of values directly below a value of the schema; None if unbounded."""
    kind = raw.get("type")
    if kind == "array":
        most = raw.get("maxItems")
    elif kind == "object" and raw.get("additionalProperties") is not None:
        most = raw.get("maxProperties")
    else:
        return 1
    return None if most is None else max(0, most)


def child_cardinality(cardinality: int | None, raw: RawSchema) -> int | None:
    """Return the cardinality one level further down; None if unbounded."""
    most = elements_max(raw)
    return None if cardinality is None or most is None else capped(cardinality * most)


def total_cost(cost: int, cardinality: int | None, extent: SizeLimits) -> int:
    """Return the cost of a rule for all values in one object."""
    return capped(cost * (cardinality_max(extent) if cardinality is None else cardinality))


def cost_message(subject: str, cost: int, limit: int) -> str:
    """Return the error message for a cost above the limit."""
    factor = float(cost) / float(limit)
    multiple = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    if factor > 100:
        multiple = "more than 100x"
    remedy = (
        "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings "
        "are declared"
    )
    return f"{subject} exceeds budget by factor of {multiple} ({remedy})"


class CostBudget:
    """The total estimated cost of one schema's rules, summed up while they are validated."""

    def __init__(self, problems: Problems, *, is_unchanged: bool) -> None:
        self._problems = problems
        #: An unchanged schema may keep rules above the limit per rule, but the limit for all rules still applies.
        self._is_unchanged = is_unchanged
        self._total = 0
        self._most_expensive: list[tuple[int, str]] = []

    def add_rule(self, subject: str, cost: int, path: str) -> None:
        """Add a rule's estimate, and report an error if it exceeds the limit per rule."""
        if cost > RULE_LIMIT and not self._is_unchanged:
            self._problems.forbidden(path, cost_message(f"estimated {subject} cost", cost, RULE_LIMIT))
        self._total = capped(self._total + cost)
        if cost >= _REPORTED_COST_MIN:
            self._most_expensive = sorted([*self._most_expensive, (cost, path)], key=lambda each: -each[0])[
                :_REPORTED_MAX
            ]

    def check_total(self, path: str) -> None:
        """Report an error if all rules together exceed the limit; name the most expensive ones."""
        if self._total <= SCHEMA_LIMIT:
            return
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        for _, rule_path in self._most_expensive:
            self._problems.forbidden(rule_path, detail)
        subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        self._problems.forbidden(path, cost_message(subject, self._total, SCHEMA_LIMIT))
