"""The type checker: checks an expression against the types of its variables before it is evaluated.

Errors are those of cel-go (checker/checker.go and errors.go): undeclared names and fields, functions and operators
without a matching overload. Values of type `dyn` pass every check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from batkube.api.cel.functions import regex, times
from batkube.api.cel.functions.operators import SIGNATURES
from batkube.api.cel.functions.overloads import (
    FUNCTIONS,
    JSON_PATCH_FUNCTIONS,
    TYPE_NAMES,
    UNSUPPORTED_FUNCTIONS,
    resolve_call,
)
from batkube.api.cel.syntax.lexer import Unsigned
from batkube.api.cel.syntax.nodes import (
    Constant,
    FunctionCall,
    Identifier,
    Index,
    ListLiteral,
    MacroCall,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
    SourceError,
    Unsupported,
)
from batkube.api.cel.types import (
    AUTHORIZER,
    BOOL,
    DOUBLE,
    DYN,
    INT,
    NULL,
    TEXT,
    UNKNOWN_ELEMENT,
    CelType,
    Signature,
    list_type,
    map_type,
    parse_signature,
)
from batkube.api.cel.values import CelError

Scope = dict[str, CelType]
"""The types of the variables, by name."""

OBJECT, JSON_PATCH = "Object", "JSONPatch"
"""The message types that the expressions of mutating policies create (Kubernetes: apiserver/pkg/cel/mutation)."""

JSON_PATCH_TYPE = CelType(JSON_PATCH, fields={"op": TEXT, "path": TEXT, "from": TEXT, "value": DYN})
PATCH_MESSAGE_TYPES: Scope = {
    OBJECT: CelType("type", (CelType(OBJECT),)),
    JSON_PATCH: CelType("type", (JSON_PATCH_TYPE,)),
}
"""The names of these types, which are in the scope of mutating policies only."""

CEL_NAMESPACE: Scope = {"cel": CelType("the namespace of cel.bind")}
"""Enables `cel.bind(name, value, expression)` in a scope; it is type-checked only."""


def message_type(name: str, scope: Scope) -> CelType | None:
    """Return the message type of this name, or None; below `Object` every field has an unchecked type."""
    root, dot, _ = name.partition(".")
    root_type = scope.get(root)
    if root_type is None or root_type.name != "type" or not root_type.parameters or (dot and root != OBJECT):
        return None
    return CelType(name) if dot else root_type.parameters[0]


_OPERATORS = {name: [parse_signature(text) for text in texts] for name, texts in SIGNATURES.items()}
_LITERALS: dict[type, CelType] = {
    bool: BOOL,
    Unsigned: CelType("uint"),
    int: INT,
    float: DOUBLE,
    str: TEXT,
    bytes: CelType("bytes"),
    type(None): NULL,
}
#: Functions whose constant arguments are validated (cel-go: ValidateDurationLiterals and the like).
_CONSTANT_READERS: dict[str, Callable[[str], object]] = {
    "duration": times.parse_duration,
    "timestamp": times.parse_timestamp,
    "matches": regex.compile_pattern,
}


NodeTypes = dict[int, CelType]
"""The type of each node, by the node's identity."""


def check(node: Node, text: str, scope: Scope) -> NodeTypes:
    """Return the types of all nodes of an expression; raises SourceError for type errors."""
    checker = _Checker()
    checker.check_node(node, scope)
    # Constants are validated only if the expression has no type error.
    problems = checker.problems or checker.bad_constants
    if problems:
        raise SourceError(text, problems)
    return checker.types


def matching_overloads(function: str, is_method: bool, types: list[CelType]) -> list[Signature]:
    """Return the overloads of a function or an operator that accept arguments of these types."""
    signatures = _OPERATORS.get(function) or [overload.signature for overload in FUNCTIONS.get(function, ())]
    return [signature for signature in signatures if signature.result_for(is_method, types) is not None]


class _Checker:
    """The check of one expression; an ill-typed node has type `dyn`, so that its error is reported once."""

    def __init__(self) -> None:
        self.problems: list[tuple[int, str]] = []
        self.bad_constants: list[tuple[int, str]] = []
        self.types: NodeTypes = {}
        self._by_node: dict[type[Node], Callable[[Any, Scope], CelType]] = {
            Constant: self._literal,
            Identifier: self._identifier,
            Select: self._select,
            Index: self._index,
            ListLiteral: self._list,
            MapLiteral: self._map,
            MessageLiteral: self._message,
            MacroCall: self._macro,
            FunctionCall: self._call,
        }

    def check_node(self, node: Node, scope: Scope) -> CelType:
        """Return the type of a node."""
        kind = self._by_node[type(node)](node, scope)
        self.types[id(node)] = kind
        return kind

    def _report(self, at: int, problem: str) -> CelType:
        self.problems.append((at, problem))
        return DYN

    def _expect_type(self, wanted: CelType, actual: CelType, node: Node) -> None:
        if actual != wanted and "dyn" not in (wanted.name, actual.name):
            self._report(node.at, f"expected type '{wanted}' but found '{actual}'")

    def _literal(self, node: Constant, scope: Scope) -> CelType:
        return _LITERALS[type(node.value)]

    def _identifier(self, node: Identifier, scope: Scope) -> CelType:
        if node.name in scope:
            return scope[node.name]
        if node.name in TYPE_NAMES:
            return CelType("type")
        return self._report(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _select(self, node: Select, scope: Scope) -> CelType:
        operand = self.check_node(node.operand, scope)
        optional = node.optional
        if operand.name == "optional_type":
            operand, optional = operand.parameters[0], True
        kind = self._field(node, operand)
        if node.test_only:
            return BOOL
        return CelType("optional_type", (kind,)) if optional and kind is not DYN else kind

    def _field(self, node: Select, operand: CelType) -> CelType:
        if operand.fields is not None:
            # A property named like a keyword may also be written unescaped.
            kind = operand.fields.get(node.field) or operand.fields.get(f"__{node.field}__")
            return kind or self._report(node.at, f"undefined field '{node.field}'")
        if operand.name == "map":
            return operand.parameters[1]
        if operand.name == "dyn" or operand.name.partition(".")[0] == OBJECT:
            return DYN
        return self._report(node.at, f"type '{operand}' does not support field selection")

    def _index(self, node: Index, scope: Scope) -> CelType:
        operand, index = self.check_node(node.operand, scope), self.check_node(node.index, scope)
        is_optional = node.optional or operand.name == "optional_type"
        if operand.name == "optional_type":
            operand = operand.parameters[0]
        kind = self._call_result_type(node.at, "_[_]", _OPERATORS["_[_]"], [operand, index])
        return CelType("optional_type", (kind,)) if is_optional and kind is not DYN else kind

    def _element_type(self, nodes: Iterable[tuple[Node, bool]], scope: Scope, *, mixed: bool = False) -> CelType:
        """Return the common type of a literal's elements."""
        common: CelType | None = None
        for node, optional in nodes:
            kind = self.check_node(node, scope)
            if optional and kind.name != "dyn":
                if kind.name != "optional_type":
                    self._report(node.at, f"expected type 'optional_type({kind})' but found '{kind}'")
                    continue
                kind = kind.parameters[0]
            if common is None:
                common = kind
            elif kind != common and not mixed:
                self._report(node.at, f"expected type '{common}' but found '{kind}'")
        if mixed:
            return DYN
        return UNKNOWN_ELEMENT if common is None else common

    def _list(self, node: ListLiteral, scope: Scope) -> CelType:
        return list_type(self._element_type(zip(node.items, node.optional, strict=True), scope))

    def _map(self, node: MapLiteral, scope: Scope) -> CelType:
        keys = self._element_type(((key, False) for key, _ in node.entries), scope)
        values = zip((value for _, value in node.entries), node.optional, strict=True)
        return map_type(self._element_type(values, scope), keys)

    def _message(self, node: MessageLiteral, scope: Scope) -> CelType:
        kind = message_type(node.name, scope)
        if kind is None:
            return self._report(node.at, f"undeclared reference to '{node.name}' (in container '')")
        for (field, value, colon), optional in zip(node.fields, node.optional, strict=True):
            actual = self._element_type([(value, optional)], scope)
            field_type = DYN if kind.fields is None else kind.fields.get(field, DYN)
            if field_type != actual and "dyn" not in (field_type.name, actual.name):
                self._report(
                    colon, f"expected type of field '{field}' is '{field_type}' but provided type is '{actual}'"
                )
        return kind

    # Macros

    def _macro(self, node: MacroCall, scope: Scope) -> CelType:
        target = self.check_node(node.target, scope)
        if node.name in ("optMap", "optFlatMap"):
            inner = target.parameters[0] if target.name == "optional_type" else DYN
            result = self.check_node(node.bodies[0], {**scope, node.variables[0]: inner})
            return result if node.name == "optFlatMap" else CelType("optional_type", (result,))
        if target.name not in ("list", "map", "dyn"):
            return self._report(
                node.target.at,
                f"expression of type '{target}' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
        inner_scope = {**scope, **_macro_variables(node, target)}
        types = [self.check_node(body, inner_scope) for body in node.bodies]
        return self._macro_result(node, target, types)

    def _macro_result(self, node: MacroCall, target: CelType, types: list[CelType]) -> CelType:
        """Return the type of a macro's result; its expansion decides which error reports a non-bool condition."""
        condition = types[0]
        if node.name in ("all", "exists"):
            self._expect_type(BOOL, condition, node.bodies[0])
            return BOOL
        if node.name in ("exists_one", "existsOne"):
            self._check_condition(node, condition, INT)
            return BOOL
        if node.name == "filter":
            filtered = list_type(target.parameters[0] if target.parameters else DYN)
            self._check_condition(node, condition, filtered)
            return filtered
        if node.name in ("map", "transformList"):
            result = list_type(types[-1])
            if len(types) == 2:
                self._check_condition(node, condition, result)
            return result
        return DYN

    def _check_condition(self, node: MacroCall, condition: CelType, result: CelType) -> None:
        self._call_result_type(node.at, "_?_:_", _OPERATORS["_?_:_"], [condition, result, result])

    # Functions and operators

    def _call(self, node: FunctionCall, scope: Scope) -> CelType:
        if (
            node.function == "bind"
            and isinstance(node.target, Identifier)
            and scope.get(node.target.name) is CEL_NAMESPACE["cel"]
        ):
            return self._cel_bind(node, scope)
        name, target = resolve_call(node)
        if target is not None and self._is_unsupported_target(target, scope):
            raise Unsupported(f"the function {name} is not known here")
        if name in JSON_PATCH_FUNCTIONS and JSON_PATCH not in scope:
            name, target = node.function, node.target
        of = [self.check_node(target, scope)] if target is not None else []
        types = of + [self._argument(name, argument, scope) for argument in node.arguments]
        if name in ("_&&_", "_||_"):
            for argument, kind in zip(node.arguments, types, strict=True):
                self._expect_type(BOOL, kind, argument)
            return BOOL
        if name in _OPERATORS:
            return self._call_result_type(node.at, name, _OPERATORS[name], types)
        if name in UNSUPPORTED_FUNCTIONS:
            raise Unsupported(f"the function {name} is not known here")
        if name not in FUNCTIONS:
            return self._report(node.at, f"undeclared reference to '{name}' (in container '')")
        signatures = [overload.signature for overload in FUNCTIONS[name]]
        kind = self._call_result_type(node.at, name, signatures, types, is_method=bool(of))
        self._check_constant(name, node)
        return kind

    def _cel_bind(self, node: FunctionCall, scope: Scope) -> CelType:
        """Return the type of `cel.bind(name, value, expression)` (cel-go: ext/bindings.go)."""
        if len(node.arguments) != 3:
            return self._report(node.at, "undeclared reference to 'bind' (in container '')")
        name, value, body = node.arguments
        if not isinstance(name, Identifier):
            return self._report(name.at, "cel.bind() variable names must be simple identifiers")
        return self.check_node(body, {**scope, name.name: self.check_node(value, scope)})

    def _is_unsupported_target(self, target: Node, scope: Scope) -> bool:
        """Return whether a chain of calls starts at a variable whose functions this interpreter does not support."""
        while isinstance(target, FunctionCall) and target.target is not None:
            target = target.target
        while isinstance(target, Select):
            target = target.operand
        return isinstance(target, Identifier) and scope.get(target.name, DYN).name == AUTHORIZER

    def _argument(self, function: str, node: Node, scope: Scope) -> CelType:
        if function == "format" and isinstance(node, ListLiteral):
            kind = list_type(self._element_type(zip(node.items, node.optional, strict=True), scope, mixed=True))
            self.types[id(node)] = kind
            return kind
        return self.check_node(node, scope)

    def _call_result_type(
        self, at: int, name: str, signatures: list[Signature], types: list[CelType], *, is_method: bool = False
    ) -> CelType:
        """Return the result type of a call."""
        results = [result for signature in signatures if (result := signature.result_for(is_method, types)) is not None]
        if not results:
            listed = ", ".join(map(str, types[1:] if is_method else types))
            on = f"{types[0]}.({listed})" if is_method else f"({listed})"
            return self._report(at, f"found no matching overload for '{name}' applied to '{on}'")
        return results[0] if all(result == results[0] for result in results) else DYN

    def _check_constant(self, name: str, node: FunctionCall) -> None:
        """Validate a constant that the evaluation will parse."""
        argument = node.arguments[-1] if name in _CONSTANT_READERS and node.arguments else None
        if not isinstance(argument, Constant) or not isinstance(argument.value, str):
            return
        try:
            _CONSTANT_READERS[name](argument.value)
        except (CelError, regex.BadPattern):
            self.bad_constants.append((argument.at, f"invalid {name} argument"))


def _macro_variables(node: MacroCall, target: CelType) -> Scope:
    """Return the variables of a macro: an item or a key, or index and item, or key and value."""
    if target.name == "dyn":
        return dict.fromkeys(node.variables, DYN)
    first = INT if target.name == "list" else target.parameters[0]
    if len(node.variables) == 2:
        return {node.variables[0]: first, node.variables[1]: target.parameters[-1]}
    return {node.variables[0]: target.parameters[0]}
