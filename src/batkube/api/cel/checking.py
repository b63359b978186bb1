"""Checking an expression against the types of its variables, before it is ever evaluated.

What is wrong is reported in the words of cel-go (checker/checker.go and errors.go): unknown names and fields, functions
and operators applied to types that they are not for. What has the type `dyn` passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from batkube.api.cel import patterns, time_functions
from batkube.api.cel.functions import ELSEWHERE, FUNCTIONS, PATCHING, TYPES, called
from batkube.api.cel.lexing import Unsigned
from batkube.api.cel.operators import SIGNATURES
from batkube.api.cel.trees import (
    Constant,
    FunctionCall,
    Index,
    ListOf,
    Macro,
    MapOf,
    MessageOf,
    Name,
    Node,
    Select,
    SourceError,
    Unsupported,
)
from batkube.api.cel.types import (
    BEYOND,
    BOOL,
    DOUBLE,
    DYN,
    INT,
    NULL,
    OPEN,
    TEXT,
    CelType,
    Signature,
    list_of,
    map_of,
    read_signature,
)
from batkube.api.cel.values import CelError

Scope = dict[str, CelType]
"""The variables with their types."""

OBJECT, PATCH = "Object", "JSONPatch"
"""The messages that expressions of mutating policies make (Kubernetes: apiserver/pkg/cel/mutation)."""

PATCH_TYPE = CelType(PATCH, fields={"op": TEXT, "path": TEXT, "from": TEXT, "value": DYN})
MESSAGES: Scope = {OBJECT: CelType("type", (CelType(OBJECT),)), PATCH: CelType("type", (PATCH_TYPE,))}
"""The names of their types, which are in the scope of such expressions only."""

BINDINGS: Scope = {"cel": CelType("the namespace of cel.bind")}
"""In the scope of expressions that may give a name to a value: `cel.bind(name, value, expression)`; checked only."""


def message_type(name: str, scope: Scope) -> CelType | None:
    """Return the type of messages of this name, or None; below `Object` there are types for all fields, unchecked."""
    root, dot, _ = name.partition(".")
    known = scope.get(root)
    if known is None or known.name != "type" or not known.parts or (dot and root != OBJECT):
        return None
    return CelType(name) if dot else known.parts[0]


_OPERATORS = {name: [read_signature(text) for text in texts] for name, texts in SIGNATURES.items()}
_LITERALS: dict[type, CelType] = {
    bool: BOOL,
    Unsigned: CelType("uint"),
    int: INT,
    float: DOUBLE,
    str: TEXT,
    bytes: CelType("bytes"),
    type(None): NULL,
}
#: Functions whose constant arguments are read beforehand (cel-go: ValidateDurationLiterals and the like).
_READ_BEFOREHAND: dict[str, Callable[[str], object]] = {
    "duration": time_functions.duration,
    "timestamp": time_functions.timestamp,
    "matches": patterns.compiled,
}


Types = dict[int, CelType]
"""The type of each part of an expression, by the identity of its node."""


def check(node: Node, text: str, scope: Scope) -> Types:
    """Return the types of an expression and its parts; raises SourceError for what is wrong in it."""
    checker = _Checker()
    checker.type(node, scope)
    # Constants are looked at only in an expression that makes sense.
    problems = checker.problems or checker.bad_constants
    if problems:
        raise SourceError(text, problems)
    return checker.types


def overloads(function: str, is_method: bool, types: list[CelType]) -> list[Signature]:
    """Return what a function or an operator may do with arguments of these types."""
    known = _OPERATORS.get(function) or [overload.signature for overload in FUNCTIONS.get(function, ())]
    return [signature for signature in known if signature.applied(is_method, types) is not None]


class _Checker:
    """One check of one expression; what is wrong has the type `dyn`, so that it is told once."""

    def __init__(self) -> None:
        self.problems: list[tuple[int, str]] = []
        self.bad_constants: list[tuple[int, str]] = []
        self.types: Types = {}
        self._by_node: dict[type[Node], Callable[[Any, Scope], CelType]] = {
            Constant: self._literal,
            Name: self._name,
            Select: self._select,
            Index: self._index,
            ListOf: self._list,
            MapOf: self._map,
            MessageOf: self._message,
            Macro: self._macro,
            FunctionCall: self._call,
        }

    def type(self, node: Node, scope: Scope) -> CelType:
        """Return the type of a part of the expression."""
        kind = self._by_node[type(node)](node, scope)
        self.types[id(node)] = kind
        return kind

    def _wrong(self, at: int, problem: str) -> CelType:
        self.problems.append((at, problem))
        return DYN

    def _expect(self, wanted: CelType, actual: CelType, node: Node) -> None:
        if actual != wanted and "dyn" not in (wanted.name, actual.name):
            self._wrong(node.at, f"expected type '{wanted}' but found '{actual}'")

    def _literal(self, node: Constant, scope: Scope) -> CelType:
        return _LITERALS[type(node.value)]

    def _name(self, node: Name, scope: Scope) -> CelType:
        if node.name in scope:
            return scope[node.name]
        if node.name in TYPES:
            return CelType("type")
        return self._wrong(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _select(self, node: Select, scope: Scope) -> CelType:
        operand = self.type(node.operand, scope)
        optional = node.optional
        if operand.name == "optional_type":
            operand, optional = operand.parts[0], True
        kind = self._field(node, operand)
        if node.tests:
            return BOOL
        return CelType("optional_type", (kind,)) if optional and kind is not DYN else kind

    def _field(self, node: Select, operand: CelType) -> CelType:
        if operand.fields is not None:
            # A property that is called like a keyword may be written as it is, too.
            kind = operand.fields.get(node.field) or operand.fields.get(f"__{node.field}__")
            return kind or self._wrong(node.at, f"undefined field '{node.field}'")
        if operand.name == "map":
            return operand.parts[1]
        if operand.name == "dyn" or operand.name.partition(".")[0] == OBJECT:
            return DYN
        return self._wrong(node.at, f"type '{operand}' does not support field selection")

    def _index(self, node: Index, scope: Scope) -> CelType:
        operand, index = self.type(node.operand, scope), self.type(node.index, scope)
        is_optional = node.optional or operand.name == "optional_type"
        if operand.name == "optional_type":
            operand = operand.parts[0]
        kind = self._applied(node.at, "_[_]", _OPERATORS["_[_]"], [operand, index])
        return CelType("optional_type", (kind,)) if is_optional and kind is not DYN else kind

    def _elements(self, nodes: Iterable[tuple[Node, bool]], scope: Scope, *, mixed: bool = False) -> CelType:
        """Return the type of the elements of a literal, which must all be of the same."""
        common: CelType | None = None
        for node, optional in nodes:
            kind = self.type(node, scope)
            if optional and kind.name != "dyn":
                if kind.name != "optional_type":
                    self._wrong(node.at, f"expected type 'optional_type({kind})' but found '{kind}'")
                    continue
                kind = kind.parts[0]
            if common is None:
                common = kind
            elif kind != common and not mixed:
                self._wrong(node.at, f"expected type '{common}' but found '{kind}'")
        if mixed:
            return DYN
        return OPEN if common is None else common

    def _list(self, node: ListOf, scope: Scope) -> CelType:
        return list_of(self._elements(zip(node.items, node.optional, strict=True), scope))

    def _map(self, node: MapOf, scope: Scope) -> CelType:
        keys = self._elements(((key, False) for key, _ in node.entries), scope)
        values = zip((value for _, value in node.entries), node.optional, strict=True)
        return map_of(self._elements(values, scope), keys)

    def _message(self, node: MessageOf, scope: Scope) -> CelType:
        kind = message_type(node.name, scope)
        if kind is None:
            return self._wrong(node.at, f"undeclared reference to '{node.name}' (in container '')")
        for (field, value, colon), optional in zip(node.fields, node.optional, strict=True):
            actual = self._elements([(value, optional)], scope)
            wanted = DYN if kind.fields is None else kind.fields.get(field, DYN)
            if wanted != actual and "dyn" not in (wanted.name, actual.name):
                self._wrong(colon, f"expected type of field '{field}' is '{wanted}' but provided type is '{actual}'")
        return kind

    # Macros

    def _macro(self, node: Macro, scope: Scope) -> CelType:
        target = self.type(node.target, scope)
        if node.name in ("optMap", "optFlatMap"):
            inner = target.parts[0] if target.name == "optional_type" else DYN
            result = self.type(node.bodies[0], {**scope, node.variables[0]: inner})
            return result if node.name == "optFlatMap" else CelType("optional_type", (result,))
        if target.name not in ("list", "map", "dyn"):
            return self._wrong(
                node.target.at,
                f"expression of type '{target}' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
        inner_scope = {**scope, **_variables(node, target)}
        types = [self.type(body, inner_scope) for body in node.bodies]
        return self._macro_result(node, target, types)

    def _macro_result(self, node: Macro, target: CelType, types: list[CelType]) -> CelType:
        """Return what a macro gives; what it expands to decides how a condition of another type is reported."""
        condition = types[0]
        if node.name in ("all", "exists"):
            self._expect(BOOL, condition, node.bodies[0])
            return BOOL
        if node.name in ("exists_one", "existsOne"):
            self._conditional(node, condition, INT)
            return BOOL
        if node.name == "filter":
            kept = list_of(target.parts[0] if target.parts else DYN)
            self._conditional(node, condition, kept)
            return kept
        if node.name in ("map", "transformList"):
            result = list_of(types[-1])
            if len(types) == 2:
                self._conditional(node, condition, result)
            return result
        return DYN

    def _conditional(self, node: Macro, condition: CelType, result: CelType) -> None:
        self._applied(node.at, "_?_:_", _OPERATORS["_?_:_"], [condition, result, result])

    # Functions and operators

    def _call(self, node: FunctionCall, scope: Scope) -> CelType:
        if node.function == "bind" and isinstance(node.target, Name) and scope.get(node.target.name) is BINDINGS["cel"]:
            return self._bound(node, scope)
        name, target = called(node)
        if target is not None and self._is_beyond(target, scope):
            raise Unsupported(f"the function {name} is not known here")
        if name in PATCHING and PATCH not in scope:
            name, target = node.function, node.target
        of = [self.type(target, scope)] if target is not None else []
        types = of + [self._argument(name, argument, scope) for argument in node.arguments]
        if name in ("_&&_", "_||_"):
            for argument, kind in zip(node.arguments, types, strict=True):
                self._expect(BOOL, kind, argument)
            return BOOL
        if name in _OPERATORS:
            return self._applied(node.at, name, _OPERATORS[name], types)
        if name in ELSEWHERE:
            raise Unsupported(f"the function {name} is not known here")
        if name not in FUNCTIONS:
            return self._wrong(node.at, f"undeclared reference to '{name}' (in container '')")
        signatures = [overload.signature for overload in FUNCTIONS[name]]
        kind = self._applied(node.at, name, signatures, types, is_method=bool(of))
        self._check_constant(name, node)
        return kind

    def _bound(self, node: FunctionCall, scope: Scope) -> CelType:
        """Return the type of an expression in which a value has a name (cel-go: ext/bindings.go)."""
        if len(node.arguments) != 3:
            return self._wrong(node.at, "undeclared reference to 'bind' (in container '')")
        name, value, body = node.arguments
        if not isinstance(name, Name):
            return self._wrong(name.at, "cel.bind() variable names must be simple identifiers")
        return self.type(body, {**scope, name.name: self.type(value, scope)})

    def _is_beyond(self, target: Node, scope: Scope) -> bool:
        """Return whether a chain of calls begins with a variable whose functions are not known here."""
        while isinstance(target, FunctionCall) and target.target is not None:
            target = target.target
        while isinstance(target, Select):
            target = target.operand
        return isinstance(target, Name) and scope.get(target.name, DYN).name == BEYOND

    def _argument(self, function: str, node: Node, scope: Scope) -> CelType:
        if function == "format" and isinstance(node, ListOf):
            kind = list_of(self._elements(zip(node.items, node.optional, strict=True), scope, mixed=True))
            self.types[id(node)] = kind
            return kind
        return self.type(node, scope)

    def _applied(
        self, at: int, name: str, signatures: list[Signature], types: list[CelType], *, is_method: bool = False
    ) -> CelType:
        """Return what a function gives for arguments of these types."""
        results = [result for each in signatures if (result := each.applied(is_method, types)) is not None]
        if not results:
            listed = ", ".join(map(str, types[1:] if is_method else types))
            on = f"{types[0]}.({listed})" if is_method else f"({listed})"
            return self._wrong(at, f"found no matching overload for '{name}' applied to '{on}'")
        return results[0] if all(result == results[0] for result in results) else DYN

    def _check_constant(self, name: str, node: FunctionCall) -> None:
        """Check a constant that will be read when the expression is evaluated."""
        argument = node.arguments[-1] if name in _READ_BEFOREHAND and node.arguments else None
        if not isinstance(argument, Constant) or not isinstance(argument.value, str):
            return
        try:
            _READ_BEFOREHAND[name](argument.value)
        except (CelError, patterns.Malformed):
            self.bad_constants.append((argument.at, f"invalid {name} argument"))


def _variables(node: Macro, target: CelType) -> Scope:
    """Return the variables of a macro: an item or a key, or index and item, or key and value."""
    if target.name == "dyn":
        return dict.fromkeys(node.variables, DYN)
    first = INT if target.name == "list" else target.parts[0]
    if len(node.variables) == 2:
        return {node.variables[0]: first, node.variables[1]: target.parts[-1]}
    return {node.variables[0]: target.parts[0]}
