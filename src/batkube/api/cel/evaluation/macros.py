"""The macros of CEL (`all`, `exists`, `map`, …), evaluated over the elements of a list or a map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from batkube.api.cel.evaluation.costs import CostMeter
from batkube.api.cel.syntax.lexer import Value
from batkube.api.cel.values import NO_OVERLOAD, OPTIONAL_NONE, CelError, CelOptional

Bindings = dict[str, Any]
Evaluate = Callable[[Bindings], Any]
"""A compiled expression."""


class MacroRange:
    """The range of a macro, and the names of its iteration variables."""

    def __init__(
        self, value: Value, names: tuple[str, ...], variables: Bindings, meter: CostMeter, cost_each: int
    ) -> None:
        self.value = value
        self._names = names
        self._variables = variables
        self._meter = meter
        self._cost_each = cost_each

    def __iter__(self) -> Iterator[tuple[Any, Bindings]]:
        """Yield each element as a one-variable macro sees it, with its variable bindings.

        One variable is bound to an item of a list or a key of a map; two are bound to index and item, or to key and
        value.
        """
        if isinstance(self.value, dict):
            for key, item in self.value.items():
                yield key, self.bind(key, key, item)
        elif isinstance(self.value, list):
            for index, item in enumerate(self.value):
                yield item, self.bind(item, index, item)
        else:
            raise CelError(NO_OVERLOAD)

    def bind(self, single: Value, key: Value, item: Value) -> Bindings:
        """Return the variable bindings of one element, and charge for it."""
        self._meter.charge(self._cost_each)
        if len(self._names) == 2:
            return {**self._variables, self._names[0]: key, self._names[1]: item}
        return {**self._variables, self._names[0]: single}

    def keys(self) -> list[Any]:
        """Return the keys of a map or the indices of a list."""
        if not isinstance(self.value, dict | list):
            raise CelError(NO_OVERLOAD)
        return list(self.value) if isinstance(self.value, dict) else list(range(len(self.value)))


def evaluate_condition(body: Evaluate, variables: Bindings) -> bool:
    """Return the value of a condition; raises CelError if it is not a bool."""
    value = body(variables)
    if not isinstance(value, bool):
        raise CelError(NO_OVERLOAD)
    return value


def _quantifier(settling: bool) -> Callable[[MacroRange, list[Evaluate]], bool]:
    """Make `all` or `exists`: an error counts only if no other element decides the result."""

    def run(elements: MacroRange, bodies: list[Evaluate]) -> bool:
        error = None
        for _, variables in elements:
            try:
                if evaluate_condition(bodies[0], variables) is settling:
                    return settling
            except CelError as problem:
                error = error or problem
        if error is not None:
            raise error
        return not settling

    return run


def _exists_one(elements: MacroRange, bodies: list[Evaluate]) -> bool:
    return sum(1 for _, variables in elements if evaluate_condition(bodies[0], variables)) == 1


def _filter(elements: MacroRange, bodies: list[Evaluate]) -> list[Any]:
    return [element for element, variables in elements if evaluate_condition(bodies[0], variables)]


def _map(elements: MacroRange, bodies: list[Evaluate]) -> list[Any]:
    """Map each element with the last expression; the first of two expressions is a filter."""
    return [
        bodies[-1](variables)
        for _, variables in elements
        if len(bodies) == 1 or evaluate_condition(bodies[0], variables)
    ]


def _transform_map(elements: MacroRange, bodies: list[Evaluate]) -> dict[Any, Any]:
    chosen = zip(elements.keys(), elements, strict=True)
    return {
        key: bodies[-1](variables)
        for key, (_, variables) in chosen
        if len(bodies) == 1 or evaluate_condition(bodies[0], variables)
    }


def _transform_entries(elements: MacroRange, bodies: list[Evaluate]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for entry in _map(elements, bodies):
        if not isinstance(entry, dict):
            raise CelError(NO_OVERLOAD)
        result.update(entry)
    return result


def _opt_flat_map(elements: MacroRange, bodies: list[Evaluate]) -> Value:
    if not isinstance(elements.value, CelOptional):
        raise CelError(NO_OVERLOAD)
    return bodies[0](elements.bind(elements.value.value, None, None)) if elements.value.has_value else OPTIONAL_NONE


def _opt_map(elements: MacroRange, bodies: list[Evaluate]) -> Value:
    result = _opt_flat_map(elements, bodies)
    return CelOptional(True, result) if elements.value.has_value else OPTIONAL_NONE


MACROS: dict[str, Callable[[MacroRange, list[Evaluate]], Any]] = {
    "all": _quantifier(False),
    "exists": _quantifier(True),
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entries,
    "optMap": _opt_map,
    "optFlatMap": _opt_flat_map,
}
