"""Checking an expression against the types of its variables, before it is ever evaluated.

Only what is certainly wrong is reported, in the words of cel-go (checker/errors.go): unknown names and fields,
operators between types that they are not for. Whatever is not known for sure has the type `dyn` and passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batkube.api.custom import patterns
from batkube.api.custom.cel import time_functions
from batkube.api.custom.cel.functions import FUNCTIONS, NAMESPACES, TYPES
from batkube.api.custom.cel.lexing import Unsigned
from batkube.api.custom.cel.trees import (
    Call,
    Index,
    ListOf,
    Literal,
    Macro,
    MapOf,
    Name,
    Node,
    Select,
    SourceError,
    Unsupported,
)
from batkube.api.custom.cel.typed import DYN, CelType
from batkube.api.custom.cel.values import CelError

Scope = dict[str, CelType]

INT, DOUBLE, TEXT, BOOL = CelType("int"), CelType("double"), CelType("string"), CelType("bool")
_SCALARS = frozenset(
    (
        *("int", "uint", "double", "string", "bool", "bytes"),
        *("duration", "timestamp"),
    )
)
_NUMBERS = frozenset(("int", "uint", "double"))
_TIMES = frozenset(("duration", "timestamp"))
_COMPARISONS = frozenset(("_<_", "_<=_", "_>_", "_>=_"))
_ARITHMETIC = {
    "_+_": frozenset((*_NUMBERS, "string", "bytes")),
    "_-_": _NUMBERS,
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": frozenset(("int", "uint")),
}
#: What functions give, where that does not depend on the arguments.
_RESULTS = {
    **dict.fromkeys(("size", "int", "indexOf", "lastIndexOf", "compareTo", "sign", "asInteger", "family"), INT),
    **dict.fromkeys(("startsWith", "endsWith", "contains", "matches", "bool", "isQuantity", "isIP", "isCIDR"), BOOL),
    **dict.fromkeys(("isURL", "isSorted", "hasValue", "isGreaterThan", "isLessThan", "isInteger"), BOOL),
    **dict.fromkeys(("containsIP", "containsCIDR", "sets.contains", "sets.intersects", "sets.equivalent"), BOOL),
    **dict.fromkeys(("string", "lowerAscii", "upperAscii", "replace", "join", "substring", "trim", "charAt"), TEXT),
    **dict.fromkeys(("format", "find", "strings.quote"), TEXT),
    **dict.fromkeys(("split", "findAll"), CelType("list", TEXT)),
    "double": DOUBLE,
    "uint": CelType("uint"),
    "bytes": CelType("bytes"),
    "duration": CelType("duration"),
    "timestamp": CelType("timestamp"),
}
#: Methods that only texts have.
_OF_TEXT = frozenset(
    (
        "startsWith",
        "endsWith",
        "contains",
        "matches",
        "lowerAscii",
        "upperAscii",
        "replace",
        "split",
        "substring",
        "trim",
    )
)
#: Functions of which all arguments are texts, with how many there are.
_ON_TEXT = {"startsWith": 2, "endsWith": 2, "contains": 2, "matches": 2, "lowerAscii": 1, "upperAscii": 1, "trim": 1}
_NOT_BOOL = (_SCALARS | {"list", "map", "null"}) - {"bool"}
_LITERALS = {
    bool: BOOL,
    Unsigned: CelType("uint"),
    int: INT,
    float: DOUBLE,
    str: TEXT,
    bytes: CelType("bytes"),
    type(None): CelType("null"),
}
#: Functions whose constant arguments are read beforehand (cel-go: ValidateDurationLiterals and the like).
_PARSED: dict[str, Callable[[str], object]] = {
    "duration": time_functions.duration,
    "timestamp": time_functions.timestamp,
    "matches": patterns.compiled,
}
#: Functions of real CEL that are not known here.
_ELSEWHERE = frozenset(("semver", "isSemver", "major", "minor", "patch", "encode", "decode"))


def check(node: Node, text: str, scope: Scope) -> CelType:
    """Return the type of an expression; raises SourceError for what is wrong in it."""
    checker = _Checker()
    found = checker.type(node, scope)
    if checker.problems:
        raise SourceError(text, checker.problems)
    return found


class _Checker:
    """One check of one expression; what is wrong has the type `dyn`, so that it is told once."""

    def __init__(self) -> None:
        self.problems: list[tuple[int, str]] = []
        self._by_node: dict[type[Node], Callable[[Any, Scope], CelType]] = {
            Literal: self._literal,
            Name: self._name,
            Select: self._select,
            Index: self._index,
            ListOf: self._list,
            MapOf: self._map,
            Macro: self._macro,
            Call: self._call,
        }

    def type(self, node: Node, scope: Scope) -> CelType:
        """Return the type of a part of the expression."""
        return self._by_node[type(node)](node, scope)

    def _wrong(self, at: int, problem: str) -> CelType:
        self.problems.append((at, problem))
        return DYN

    def _mismatch(self, at: int, name: str, *types: CelType) -> CelType:
        applied = ", ".join(map(str, types))
        return self._wrong(at, f"found no matching overload for '{name}' applied to '({applied})'")

    def _need_bool(self, node: Node, found: CelType) -> None:
        if found.name in _NOT_BOOL:
            self._wrong(node.at, f"expected type 'bool' but found '{found}'")

    def _literal(self, node: Literal, scope: Scope) -> CelType:
        return _LITERALS.get(type(node.value), DYN)

    def _name(self, node: Name, scope: Scope) -> CelType:
        if node.name in scope:
            return scope[node.name]
        if node.name in TYPES:
            return DYN
        return self._wrong(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _select(self, node: Select, scope: Scope) -> CelType:
        operand = self.type(node.operand, scope)
        found: CelType | None = DYN
        if operand.fields is not None:
            # A property that is called like a keyword may be written as it is, too.
            found = operand.fields.get(node.field) or operand.fields.get(f"__{node.field}__")
            if found is None:
                return self._wrong(node.at, f"undefined field '{node.field}'")
        elif operand.name == "map":
            found = operand.items
        elif operand.name == "list" or operand.name in _SCALARS:
            return self._wrong(node.at, f"type '{operand}' does not support field selection")
        if node.tests:
            return BOOL
        return DYN if node.optional or found is None else found

    def _index(self, node: Index, scope: Scope) -> CelType:
        operand, index = self.type(node.operand, scope), self.type(node.index, scope)
        wanted = {"list": _NUMBERS, "map": frozenset(("string",))}.get(operand.name)
        if operand.name in _SCALARS or (wanted is not None and index.name in _SCALARS - wanted):
            return self._mismatch(node.at, "_[_]", operand, index)
        return DYN if node.optional or operand.items is None else operand.items

    def _list(self, node: ListOf, scope: Scope) -> CelType:
        types = [self.type(item, scope) for item in node.items]
        if not types or any(node.optional):
            return CelType("list", DYN)
        for item, kind in zip(node.items, types, strict=True):
            if kind.name in _SCALARS and types[0].name in _SCALARS and kind.name != types[0].name:
                self._wrong(item.at, f"expected type '{types[0]}' but found '{kind}'")
        return CelType("list", types[0] if all(kind == types[0] for kind in types) else DYN)

    def _map(self, node: MapOf, scope: Scope) -> CelType:
        for key, value in node.entries:
            self.type(key, scope)
            self.type(value, scope)
        return CelType("map", DYN)

    def _macro(self, node: Macro, scope: Scope) -> CelType:
        target = self.type(node.target, scope)
        if target.name in _SCALARS:
            return self._wrong(
                node.target.at,
                f"expression of type '{target}' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
        inner = {**scope, **self._variables(node, target)}
        types = [self.type(body, inner) for body in node.bodies]
        if node.name in ("all", "exists"):
            self._need_bool(node.bodies[0], types[0])
        if node.name in ("all", "exists", "exists_one", "existsOne"):
            return BOOL
        if node.name == "filter":
            if types[0].name in _NOT_BOOL:
                return self._mismatch(node.at, "_?_:_", types[0], target, target)
            return target if target.name == "list" else DYN
        return CelType("list", types[-1]) if node.name in ("map", "transformList") else DYN

    @staticmethod
    def _variables(node: Macro, target: CelType) -> Scope:
        items = target.items or DYN
        if len(node.variables) == 2:
            first = INT if target.name == "list" else TEXT if target.name == "map" else DYN
            return dict(zip(node.variables, (first, items), strict=True))
        single = items if target.name == "list" else TEXT if target.name == "map" or target.fields is not None else DYN
        return {node.variables[0]: single}

    # Functions and operators

    def _call(self, node: Call, scope: Scope) -> CelType:
        name, target = node.function, node.target
        if isinstance(target, Name) and target.name in NAMESPACES and target.name not in scope:
            name, target = f"{target.name}.{name}", None
        of = self.type(target, scope) if target is not None else None
        types = [self.type(argument, scope) for argument in node.arguments]
        if name[0] in "_!-@":
            return self._operator(node, name, types)
        if name in _ELSEWHERE or ("." in name and name not in FUNCTIONS):
            raise Unsupported(f"the function {name} is not known here")
        if name not in FUNCTIONS:
            return self._wrong(node.at, f"undeclared reference to '{name}' (in container '')")
        if not _is_applicable(name, of, types):
            applied = f"({', '.join(map(str, types))})"
            on = applied if of is None else f"{of}.{applied}"
            return self._wrong(node.at, f"found no matching overload for '{name}' applied to '{on}'")
        self._check_literal(name, node)
        return _RESULTS.get(name, DYN)

    def _check_literal(self, name: str, node: Call) -> None:
        """Check a constant that will be parsed when the expression is evaluated."""
        if name not in _PARSED or not node.arguments:
            return
        argument = node.arguments[-1]
        if isinstance(argument, Literal) and isinstance(argument.value, str):
            try:
                _PARSED[name](argument.value)
            except (CelError, patterns.Malformed):
                self._wrong(argument.at, f"invalid {name} argument")
            except patterns.Unsupported as problem:
                raise Unsupported(str(problem)) from problem

    def _operator(self, node: Call, name: str, types: list[CelType]) -> CelType:
        if name == "_?_:_":
            if types[0].name in _NOT_BOOL:
                return self._mismatch(node.at, name, *types)
            return types[1] if types[1] == types[2] else DYN
        if name in ("_&&_", "_||_"):
            for argument, found in zip(node.arguments, types, strict=True):
                self._need_bool(argument, found)
            return BOOL
        if name == "!_":
            return self._mismatch(node.at, name, *types) if types[0].name in _NOT_BOOL else BOOL
        if name == "-_":
            is_wrong = types[0].name in _SCALARS - {"int", "double"}
            return self._mismatch(node.at, name, *types) if is_wrong else types[0]
        return self._binary(node, name, *types)

    def _binary(self, node: Call, name: str, left: CelType, right: CelType) -> CelType:
        known = left.name in _SCALARS and right.name in _SCALARS
        if name in _ARITHMETIC:
            is_time = left.name in _TIMES or right.name in _TIMES
            if known and not is_time and (left.name != right.name or left.name not in _ARITHMETIC[name]):
                return self._mismatch(node.at, name, left, right)
            return left if (known and not is_time) or left.name == "list" else DYN
        if name in _COMPARISONS:
            both_numbers = left.name in _NUMBERS and right.name in _NUMBERS
            is_wrong = known and left.name != right.name and not both_numbers
        elif name == "@in":
            items = right.items if right.name == "list" else TEXT if right.name == "map" else None
            is_wrong = right.name in _SCALARS or (
                items is not None and left.name in _SCALARS and items.name in _SCALARS and left.name != items.name
            )
        else:
            is_wrong = _are_incomparable(left, right)
        return self._mismatch(node.at, name, left, right) if is_wrong else BOOL


def _are_incomparable(left: CelType, right: CelType) -> bool:
    """Return whether two types can certainly not be equal; null can stand for what is a message in Go."""
    for one, other in ((left, right), (right, left)):
        if one.name == "null" and other.name in _SCALARS - _TIMES:
            return True
        if one.name == "list" and other.name == "list":
            mine, theirs = one.items or DYN, other.items or DYN
            return mine.name in _SCALARS and theirs.name in _SCALARS and mine.name != theirs.name
    return left.name in _SCALARS and right.name in _SCALARS and left.name != right.name


def _is_applicable(name: str, of: CelType | None, types: list[CelType]) -> bool:
    """Return whether a function may be applied to such arguments, as far as is known here."""
    given = [*([of] if of is not None else []), *types]
    if name == "size":
        return len(given) == 1 and given[0].name not in _SCALARS - {"string", "bytes"}
    if name in _ON_TEXT:
        wanted = _ON_TEXT[name]
        return len(given) == wanted and all(kind.name not in _SCALARS - {"string"} for kind in given)
    if of is not None and name in _OF_TEXT:
        return of.name not in _SCALARS - {"string"}
    return True
