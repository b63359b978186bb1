"""Expressions ready to run: read and checked once, evaluated for many objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from batkube.api.cel.checking import Scope, check
from batkube.api.cel.costs import Meter
from batkube.api.cel.estimating import estimated_cost
from batkube.api.cel.evaluating import compiled
from batkube.api.cel.extents import MOST, Extent
from batkube.api.cel.lexing import Value
from batkube.api.cel.parsing import TOO_DEEP, parsed
from batkube.api.cel.trees import NOWHERE, Name, Node, SourceError
from batkube.api.cel.types import CelType
from batkube.api.cel.values import CelError


class CelProgram:
    """An expression of CEL, parsed and checked, that can be evaluated again and again."""

    def __init__(self, text: str, scope: Scope) -> None:
        """Read and check `text`; raises SourceError if it is wrong, Unsupported if it is beyond this interpreter."""
        self._meter = Meter()
        try:
            self._tree = parsed(text)
            self._types = check(self._tree, text, scope)
            self.type: CelType = self._types[id(self._tree)]
            self.names = frozenset(_names(self._tree))
            self._evaluate = compiled(self._tree, self._meter)
        except RecursionError:
            raise SourceError(text, [(NOWHERE, TOO_DEEP)]) from None

    def __call__(self, variables: dict[str, Any]) -> Value:
        """Return the value for given variables; raises CelError, or CostExceeded if it takes too much."""
        self._meter.spent = 0
        try:
            return self._evaluate(variables)
        except RecursionError:
            raise CelError(TOO_DEEP) from None

    def cost_most(self, root: Extent) -> int:
        """Return what an evaluation can cost, for variables as large as they may be."""
        try:
            return estimated_cost(self._tree, self._types, root)
        except RecursionError:
            return MOST

    @property
    def cost(self) -> int:
        """What the last evaluation cost."""
        return self._meter.spent


def _names(part: Value) -> Iterator[str]:
    """Yield the names that an expression uses."""
    if isinstance(part, Name):
        yield part.name
    elif isinstance(part, tuple):
        for item in part:
            yield from _names(item)
    elif isinstance(part, Node):
        for field in part.__struct_fields__:
            yield from _names(getattr(part, field))
