"""From a tree to Python functions, which evaluate it.

Each node becomes a function of the variables. `&&` and `||` do not care for an error on one side if the other settles
the result, and neither do `all` and `exists` (cel-spec: "Logical operators").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batkube.api.custom.cel.functions import FUNCTIONS, NAMESPACES, TYPES, call
from batkube.api.custom.cel.lexing import Value
from batkube.api.custom.cel.macros import MACROS, Elements, Evaluate, Variables
from batkube.api.custom.cel.operators import BINARY, UNARY
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
    Unsupported,
)
from batkube.api.custom.cel.values import NO_OVERLOAD, NONE, CelError, Optional, Record, is_number


def compiled(node: Node) -> Evaluate:
    """Return a function that evaluates an expression for given variables; it raises CelError."""
    return _COMPILERS[type(node)](node)


def _literal(node: Literal) -> Evaluate:
    value = node.value
    return lambda variables: value


def _name(node: Name) -> Evaluate:
    name = node.name
    constant = TYPES.get(name)

    def evaluate(variables: Variables) -> Value:
        if name in variables:
            return variables[name]
        if constant is None:
            raise CelError(f"no such attribute(s): {name}")
        return constant

    return evaluate


def _select(node: Select) -> Evaluate:
    operand, field = compiled(node.operand), node.field

    def has(variables: Variables) -> Value:
        value = operand(variables)
        if isinstance(value, Optional):
            value = value.value if value.has else {}
        if not isinstance(value, dict):
            raise CelError(NO_OVERLOAD)
        return field in value or (isinstance(value, Record) and f"__{field}__" in value)

    def select(variables: Variables) -> Value:
        return _member(operand(variables), field, node.optional)

    return has if node.tests else select


def _member(value: Value, key: Value, optional: bool) -> Value:
    """Return a field, an item or the value of a key; one of an optional, or asked for as one, is an optional too."""
    if isinstance(value, Optional):
        return _member(value.value, key, True) if value.has else NONE
    if isinstance(value, dict):
        if isinstance(key, list | dict):
            raise CelError(f"unsupported key type: {type(key).__name__}")
        if isinstance(value, Record) and key not in value:
            key = f"__{key}__" if f"__{key}__" in value else key
        if key in value:
            return Optional(True, value[key]) if optional else value[key]
        if optional:
            return NONE
        raise CelError(f"no such key: {key}")
    if isinstance(value, list) and is_number(key):
        index = int(key)
        if 0 <= index < len(value) and index == key:
            return Optional(True, value[index]) if optional else value[index]
        if optional:
            return NONE
        raise CelError(f"index out of bounds: {key}")
    raise CelError(NO_OVERLOAD)


def _index(node: Index) -> Evaluate:
    operand, index, optional = compiled(node.operand), compiled(node.index), node.optional
    return lambda variables: _member(operand(variables), index(variables), optional)


def _list(node: ListOf) -> Evaluate:
    items = [(compiled(item), optional) for item, optional in zip(node.items, node.optional, strict=True)]

    def evaluate(variables: Variables) -> Value:
        result = []
        for item, optional in items:
            value = item(variables)
            if not optional:
                result.append(value)
            elif value.has:
                result.append(value.value)
        return result

    return evaluate


def _map(node: MapOf) -> Evaluate:
    entries = [
        (compiled(key), compiled(value), optional)
        for (key, value), optional in zip(node.entries, node.optional, strict=True)
    ]

    def evaluate(variables: Variables) -> Value:
        result = {}
        for key, entry, optional in entries:
            value = entry(variables)
            if not optional:
                result[key(variables)] = value
            elif value.has:
                result[key(variables)] = value.value
        return result

    return evaluate


def _call(node: Call) -> Evaluate:
    if node.function in _CONNECTIVES:
        return _CONNECTIVES[node.function](*(compiled(argument) for argument in node.arguments))
    if node.function in BINARY and node.target is None:
        operate = BINARY[node.function]
        left, right = (compiled(argument) for argument in node.arguments)
        return lambda variables: operate(left(variables), right(variables))
    if node.function in UNARY and node.target is None:
        change, operand = UNARY[node.function], compiled(node.arguments[0])
        return lambda variables: change(operand(variables))
    name, target = node.function, node.target
    if isinstance(target, Name) and target.name in NAMESPACES and f"{target.name}.{name}" in FUNCTIONS:
        name, target = f"{target.name}.{name}", None
    parts = ([target] if target is not None else []) + list(node.arguments)
    if name not in FUNCTIONS:
        raise Unsupported(f"the function {name} is not known here")
    arguments, is_method = [compiled(part) for part in parts], target is not None
    return lambda variables: call(name, is_method, [argument(variables) for argument in arguments])


def _and(left: Evaluate, right: Evaluate) -> Evaluate:
    return _settled_by(False, left, right)


def _or(left: Evaluate, right: Evaluate) -> Evaluate:
    return _settled_by(True, left, right)


def _settled_by(settling: bool, left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(variables: Variables) -> bool:
        error = None
        for side in (left, right):
            try:
                value = side(variables)
                if not isinstance(value, bool):
                    raise CelError(NO_OVERLOAD)
            except CelError as problem:
                error = error or problem
            else:
                if value is settling:
                    return settling
        if error is not None:
            raise error
        return not settling

    return evaluate


def _conditional(condition: Evaluate, left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(variables: Variables) -> Value:
        value = condition(variables)
        if not isinstance(value, bool):
            raise CelError(NO_OVERLOAD)
        return left(variables) if value else right(variables)

    return evaluate


_CONNECTIVES: dict[str, Callable[..., Evaluate]] = {"_&&_": _and, "_||_": _or, "_?_:_": _conditional}


def _macro(node: Macro) -> Evaluate:
    target, bodies = compiled(node.target), [compiled(body) for body in node.bodies]
    run, names = MACROS[node.name], node.variables
    return lambda variables: run(Elements(target(variables), names, variables), bodies)


_COMPILERS: dict[type[Node], Callable[[Any], Evaluate]] = {
    Literal: _literal,
    Name: _name,
    Select: _select,
    Index: _index,
    ListOf: _list,
    MapOf: _map,
    Call: _call,
    Macro: _macro,
}
