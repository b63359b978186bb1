"""Compilation of syntax trees to Python functions.

Each node becomes a function of the variables. `&&` and `||` ignore an error on one side if the other side decides the
result, and so do `all` and `exists` (cel-spec: "Logical operators"). Each step is charged to a cost meter (`costs`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batkube.api.cel.evaluation.costs import (
    LIST_COST,
    MACRO_ELEMENT_COST_DEFAULT,
    MACRO_ELEMENT_COSTS,
    MAP_COST,
    MESSAGE_COST,
    CostMeter,
    call_cost,
)
from batkube.api.cel.evaluation.macros import MACROS, Bindings, Evaluate, MacroRange
from batkube.api.cel.functions.operators import BINARY, UNARY
from batkube.api.cel.functions.overloads import FUNCTIONS, TYPE_NAMES, call_function, resolve_call
from batkube.api.cel.syntax.lexer import Value
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
    Unsupported,
)
from batkube.api.cel.values import (
    NO_OVERLOAD,
    OPTIONAL_NONE,
    CelError,
    CelMessage,
    CelObject,
    CelOptional,
    is_number,
    type_name,
)


def compile_node(node: Node, meter: CostMeter) -> Evaluate:
    """Compile an expression to a function of its variables, which raises CelError or CostExceeded."""
    return _COMPILERS[type(node)](node, meter)


def _literal(node: Constant, meter: CostMeter) -> Evaluate:
    value = node.value
    return lambda variables: value


def _identifier(node: Identifier, meter: CostMeter) -> Evaluate:
    name = node.name
    constant = TYPE_NAMES.get(name)

    def evaluate(variables: Bindings) -> Value:
        meter.charge(1)
        if name in variables:
            return variables[name]
        if constant is None:
            raise CelError(f"no such attribute(s): {name}")
        return constant

    return evaluate


def _select(node: Select, meter: CostMeter) -> Evaluate:
    operand, field = compile_node(node.operand, meter), node.field

    def has(variables: Bindings) -> Value:
        value = operand(variables)
        if isinstance(value, CelOptional):
            value = value.value if value.has_value else {}
        if not isinstance(value, dict):
            raise CelError(NO_OVERLOAD)
        return field in value or (isinstance(value, CelObject) and f"__{field}__" in value)

    def select(variables: Bindings) -> Value:
        meter.charge(1)
        return _member(operand(variables), field, node.optional)

    return has if node.test_only else select


def _member(value: Value, key: Value, optional: bool) -> Value:
    """Return a field, an item or a map value; the result is an optional if the operand or the access is optional."""
    if isinstance(value, CelOptional):
        return _member(value.value, key, True) if value.has_value else OPTIONAL_NONE
    if isinstance(value, dict):
        _check_key(key)
        if isinstance(value, CelObject) and key not in value:
            key = f"__{key}__" if f"__{key}__" in value else key
        if key in value:
            return CelOptional(True, value[key]) if optional else value[key]
        if optional:
            return OPTIONAL_NONE
        raise CelError(f"no such key: {key}")
    if isinstance(value, list) and is_number(key):
        if 0 <= key < len(value) and int(key) == key:
            return CelOptional(True, value[int(key)]) if optional else value[int(key)]
        if optional:
            return OPTIONAL_NONE
        raise CelError(f"index out of bounds: {key}")
    raise CelError(NO_OVERLOAD)


def _check_key(key: Value) -> None:
    """Raise CelError if the value is not a valid map key."""
    if not isinstance(key, str | int | float | None):
        raise CelError(f"unsupported key type: {type_name(key)}")


def _index(node: Index, meter: CostMeter) -> Evaluate:
    operand, index, optional = compile_node(node.operand, meter), compile_node(node.index, meter), node.optional

    def evaluate(variables: Bindings) -> Value:
        meter.charge(1)
        return _member(operand(variables), index(variables), optional)

    return evaluate


def _as_optional(value: Value) -> CelOptional:
    """Return the operand of `?` in a literal, which must be an optional."""
    if not isinstance(value, CelOptional):
        raise CelError(NO_OVERLOAD)
    return value


def _list(node: ListLiteral, meter: CostMeter) -> Evaluate:
    items = [(compile_node(item, meter), optional) for item, optional in zip(node.items, node.optional, strict=True)]

    def evaluate(variables: Bindings) -> Value:
        meter.charge(LIST_COST)
        result = []
        for item, optional in items:
            value = item(variables)
            if not optional:
                result.append(value)
            elif _as_optional(value).has_value:
                result.append(value.value)
        return result

    return evaluate


def _map(node: MapLiteral, meter: CostMeter) -> Evaluate:
    entries = [
        (compile_node(key, meter), compile_node(value, meter), optional)
        for (key, value), optional in zip(node.entries, node.optional, strict=True)
    ]

    def evaluate(variables: Bindings) -> Value:
        meter.charge(MAP_COST)
        result = {}
        for key_of, entry, optional in entries:
            value, key = entry(variables), key_of(variables)
            _check_key(key)
            if not optional:
                result[key] = value
            elif _as_optional(value).has_value:
                result[key] = value.value
        return result

    return evaluate


def _message(node: MessageLiteral, meter: CostMeter) -> Evaluate:
    fields = [
        (field, compile_node(value, meter), optional)
        for (field, value, _), optional in zip(node.fields, node.optional, strict=True)
    ]

    def evaluate(variables: Bindings) -> Value:
        meter.charge(MESSAGE_COST)
        made = {}
        for field, value_of, optional in fields:
            value = value_of(variables)
            if not optional:
                made[field] = value
            elif _as_optional(value).has_value:
                made[field] = value.value
        return CelMessage(node.name, made)

    return evaluate


def _call(node: FunctionCall, meter: CostMeter) -> Evaluate:
    if node.function in _CONNECTIVES:
        return _CONNECTIVES[node.function](*(compile_node(argument, meter) for argument in node.arguments))
    name, target = resolve_call(node)
    apply = _implementation_of(name, is_method=target is not None)
    parts = ([target] if target is not None else []) + list(node.arguments)
    arguments, cost = [compile_node(part, meter) for part in parts], call_cost(name)

    def evaluate(variables: Bindings) -> Value:
        values = [argument(variables) for argument in arguments]
        meter.charge(cost(values))
        return apply(*values)

    return evaluate


def _implementation_of(name: str, *, is_method: bool) -> Callable[..., Any]:
    """Return the implementation of an operator or a function."""
    operator = None if is_method else BINARY.get(name) or UNARY.get(name)
    if operator is not None:
        return operator
    if name not in FUNCTIONS:
        raise Unsupported(f"the function {name} is not known here")
    return lambda *arguments: call_function(name, is_method, list(arguments))


def _and(left: Evaluate, right: Evaluate) -> Evaluate:
    return _short_circuit(False, left, right)


def _or(left: Evaluate, right: Evaluate) -> Evaluate:
    return _short_circuit(True, left, right)


def _short_circuit(settling: bool, left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(variables: Bindings) -> bool:
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
    def evaluate(variables: Bindings) -> Value:
        value = condition(variables)
        if not isinstance(value, bool):
            raise CelError(NO_OVERLOAD)
        return left(variables) if value else right(variables)

    return evaluate


_CONNECTIVES: dict[str, Callable[..., Evaluate]] = {"_&&_": _and, "_||_": _or, "_?_:_": _conditional}


def _macro(node: MacroCall, meter: CostMeter) -> Evaluate:
    target, bodies = compile_node(node.target, meter), [compile_node(body, meter) for body in node.bodies]
    run, names, element_cost = (
        MACROS[node.name],
        node.variables,
        MACRO_ELEMENT_COSTS.get(node.name, MACRO_ELEMENT_COST_DEFAULT),
    )
    return lambda variables: run(MacroRange(target(variables), names, variables, meter, element_cost), bodies)


_COMPILERS: dict[type[Node], Callable[[Any, CostMeter], Evaluate]] = {
    Constant: _literal,
    Identifier: _identifier,
    Select: _select,
    Index: _index,
    ListLiteral: _list,
    MapLiteral: _map,
    MessageLiteral: _message,
    FunctionCall: _call,
    MacroCall: _macro,
}
