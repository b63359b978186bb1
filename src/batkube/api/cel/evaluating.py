"""From a tree to Python functions, which evaluate it.

Each node becomes a function of the variables. `&&` and `||` do not care for an error on one side if the other settles
the result, and neither do `all` and `exists` (cel-spec: "Logical operators"). Each step is paid for (`costs`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batkube.api.cel.costs import LIST, MAP, MESSAGE, PER_ELEMENT, PER_ELEMENT_ELSE, Meter, price
from batkube.api.cel.functions import FUNCTIONS, TYPES, call, called
from batkube.api.cel.lexing import Value
from batkube.api.cel.macros import MACROS, Elements, Evaluate, Variables
from batkube.api.cel.operators import BINARY, UNARY
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
    Unsupported,
)
from batkube.api.cel.values import NO_OVERLOAD, NONE, CelError, CelMessage, CelObject, Optional, is_number, type_name


def compiled(node: Node, meter: Meter) -> Evaluate:
    """Return a function that evaluates an expression for given variables; it raises CelError or CostExceeded."""
    return _COMPILERS[type(node)](node, meter)


def _literal(node: Constant, meter: Meter) -> Evaluate:
    value = node.value
    return lambda variables: value


def _name(node: Name, meter: Meter) -> Evaluate:
    name = node.name
    constant = TYPES.get(name)

    def evaluate(variables: Variables) -> Value:
        meter.spend(1)
        if name in variables:
            return variables[name]
        if constant is None:
            raise CelError(f"no such attribute(s): {name}")
        return constant

    return evaluate


def _select(node: Select, meter: Meter) -> Evaluate:
    operand, field = compiled(node.operand, meter), node.field

    def has(variables: Variables) -> Value:
        value = operand(variables)
        if isinstance(value, Optional):
            value = value.value if value.has else {}
        if not isinstance(value, dict):
            raise CelError(NO_OVERLOAD)
        return field in value or (isinstance(value, CelObject) and f"__{field}__" in value)

    def select(variables: Variables) -> Value:
        meter.spend(1)
        return _member(operand(variables), field, node.optional)

    return has if node.tests else select


def _member(value: Value, key: Value, optional: bool) -> Value:
    """Return a field, an item or the value of a key; one of an optional, or asked for as one, is an optional too."""
    if isinstance(value, Optional):
        return _member(value.value, key, True) if value.has else NONE
    if isinstance(value, dict):
        _check_key(key)
        if isinstance(value, CelObject) and key not in value:
            key = f"__{key}__" if f"__{key}__" in value else key
        if key in value:
            return Optional(True, value[key]) if optional else value[key]
        if optional:
            return NONE
        raise CelError(f"no such key: {key}")
    if isinstance(value, list) and is_number(key):
        if 0 <= key < len(value) and int(key) == key:
            return Optional(True, value[int(key)]) if optional else value[int(key)]
        if optional:
            return NONE
        raise CelError(f"index out of bounds: {key}")
    raise CelError(NO_OVERLOAD)


def _check_key(key: Value) -> None:
    """Refuse what cannot be a key of a map."""
    if not isinstance(key, str | int | float | None):
        raise CelError(f"unsupported key type: {type_name(key)}")


def _index(node: Index, meter: Meter) -> Evaluate:
    operand, index, optional = compiled(node.operand, meter), compiled(node.index, meter), node.optional

    def evaluate(variables: Variables) -> Value:
        meter.spend(1)
        return _member(operand(variables), index(variables), optional)

    return evaluate


def _optional(value: Value) -> Optional:
    """Return what stands after a question mark in a literal: it must be an optional."""
    if not isinstance(value, Optional):
        raise CelError(NO_OVERLOAD)
    return value


def _list(node: ListOf, meter: Meter) -> Evaluate:
    items = [(compiled(item, meter), optional) for item, optional in zip(node.items, node.optional, strict=True)]

    def evaluate(variables: Variables) -> Value:
        meter.spend(LIST)
        result = []
        for item, optional in items:
            value = item(variables)
            if not optional:
                result.append(value)
            elif _optional(value).has:
                result.append(value.value)
        return result

    return evaluate


def _map(node: MapOf, meter: Meter) -> Evaluate:
    entries = [
        (compiled(key, meter), compiled(value, meter), optional)
        for (key, value), optional in zip(node.entries, node.optional, strict=True)
    ]

    def evaluate(variables: Variables) -> Value:
        meter.spend(MAP)
        result = {}
        for key_of, entry, optional in entries:
            value, key = entry(variables), key_of(variables)
            _check_key(key)
            if not optional:
                result[key] = value
            elif _optional(value).has:
                result[key] = value.value
        return result

    return evaluate


def _message(node: MessageOf, meter: Meter) -> Evaluate:
    fields = [
        (field, compiled(value, meter), optional)
        for (field, value, _), optional in zip(node.fields, node.optional, strict=True)
    ]

    def evaluate(variables: Variables) -> Value:
        meter.spend(MESSAGE)
        made = {}
        for field, value_of, optional in fields:
            value = value_of(variables)
            if not optional:
                made[field] = value
            elif _optional(value).has:
                made[field] = value.value
        return CelMessage(node.name, made)

    return evaluate


def _call(node: FunctionCall, meter: Meter) -> Evaluate:
    if node.function in _CONNECTIVES:
        return _CONNECTIVES[node.function](*(compiled(argument, meter) for argument in node.arguments))
    name, target = called(node)
    apply = _applied(name, is_method=target is not None)
    parts = ([target] if target is not None else []) + list(node.arguments)
    arguments, cost = [compiled(part, meter) for part in parts], price(name)

    def evaluate(variables: Variables) -> Value:
        values = [argument(variables) for argument in arguments]
        meter.spend(cost(values))
        return apply(*values)

    return evaluate


def _applied(name: str, *, is_method: bool) -> Callable[..., Any]:
    """Return an operator or a function by its name."""
    operator = None if is_method else BINARY.get(name) or UNARY.get(name)
    if operator is not None:
        return operator
    if name not in FUNCTIONS:
        raise Unsupported(f"the function {name} is not known here")
    return lambda *arguments: call(name, is_method, list(arguments))


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


def _macro(node: Macro, meter: Meter) -> Evaluate:
    target, bodies = compiled(node.target, meter), [compiled(body, meter) for body in node.bodies]
    run, names, each = MACROS[node.name], node.variables, PER_ELEMENT.get(node.name, PER_ELEMENT_ELSE)
    return lambda variables: run(Elements(target(variables), names, variables, meter, each), bodies)


_COMPILERS: dict[type[Node], Callable[[Any, Meter], Evaluate]] = {
    Constant: _literal,
    Name: _name,
    Select: _select,
    Index: _index,
    ListOf: _list,
    MapOf: _map,
    MessageOf: _message,
    FunctionCall: _call,
    Macro: _macro,
}
