"""CEL programs: expressions parsed and checked once, and evaluated for many objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from batkube.api.cel.checker import Scope, check
from batkube.api.cel.estimation.estimator import estimate_cost
from batkube.api.cel.estimation.sizes import SIZE_MAX, SizeLimits
from batkube.api.cel.evaluation.compiler import compile_node
from batkube.api.cel.evaluation.costs import CostMeter
from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.syntax.nodes import NO_POSITION, Identifier, Node, SourceError
from batkube.api.cel.syntax.parser import TOO_DEEP, parse
from batkube.api.cel.types import CelType
from batkube.api.cel.values import CelError


class CelProgram:
    """A parsed and checked CEL expression that can be evaluated repeatedly."""

    def __init__(self, text: str, scope: Scope) -> None:
        """Parse and check `text`; raises SourceError if it is invalid, Unsupported if a feature is missing here."""
        self._meter = CostMeter()
        try:
            self._tree = parse(text)
            self._types = check(self._tree, text, scope)
            self.type: CelType = self._types[id(self._tree)]
            self.identifiers = frozenset(_identifiers(self._tree))
            self._evaluate = compile_node(self._tree, self._meter)
        except RecursionError:
            raise SourceError(text, [(NO_POSITION, TOO_DEEP)]) from None

    def __call__(self, variables: dict[str, Any]) -> Value:
        """Evaluate the expression; raises CelError, or CostExceeded."""
        self._meter.spent = 0
        try:
            return self._evaluate(variables)
        except RecursionError:
            raise CelError(TOO_DEEP) from None

    def cost_max(self, root: SizeLimits) -> int:
        """Return the maximum cost of an evaluation, for variables of the maximum size."""
        try:
            return estimate_cost(self._tree, self._types, root)
        except RecursionError:
            return SIZE_MAX

    @property
    def last_cost(self) -> int:
        """The cost of the last evaluation."""
        return self._meter.spent


def _identifiers(part: Value) -> Iterator[str]:
    """Yield the identifiers in an expression."""
    if isinstance(part, Identifier):
        yield part.name
    elif isinstance(part, tuple):
        for item in part:
            yield from _identifiers(item)
    elif isinstance(part, Node):
        for field in part.__struct_fields__:
            yield from _identifiers(getattr(part, field))
