"""Expressions ready to run: read and checked once, evaluated for many objects."""

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
    """An expression of CEL, parsed and checked, that can be evaluated again and again."""

    def __init__(self, text: str, scope: Scope) -> None:
        """Read and check `text`; raises SourceError if it is wrong, Unsupported if it is beyond this interpreter."""
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
        """Return the value for given variables; raises CelError, or CostExceeded if it takes too much."""
        self._meter.spent = 0
        try:
            return self._evaluate(variables)
        except RecursionError:
            raise CelError(TOO_DEEP) from None

    def cost_max(self, root: SizeLimits) -> int:
        """Return what an evaluation can cost, for variables as large as they may be."""
        try:
            return estimate_cost(self._tree, self._types, root)
        except RecursionError:
            return SIZE_MAX

    @property
    def last_cost(self) -> int:
        """What the last evaluation cost."""
        return self._meter.spent


def _identifiers(part: Value) -> Iterator[str]:
    """Yield the names that an expression uses."""
    if isinstance(part, Identifier):
        yield part.name
    elif isinstance(part, tuple):
        for item in part:
            yield from _identifiers(item)
    elif isinstance(part, Node):
        for field in part.__struct_fields__:
            yield from _identifiers(getattr(part, field))
