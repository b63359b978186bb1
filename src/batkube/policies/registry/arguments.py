"""Constructor arguments from the command line: `--scheduler-arg preempt=false` becomes `preempt=False`.

The constructor itself says what it takes: its parameters are the names, their annotations the types. A parameter
without annotation has the type of its default, or else gets the text.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping

from batkube.kernel.errors import InputError
from batkube.policies.interface import Policy

Value = bool | int | float | str | None


def construct_policy(policy: type[Policy], spec: str, arguments: Mapping[str, str]) -> Policy:
    """Return `policy(**arguments)`, each text converted; InputError if the constructor does not take them."""
    source = f"policy {spec!r}"
    parameters, takes_any = _parameters(policy)
    values: dict[str, Value] = {}
    for name, text in arguments.items():
        if name not in parameters and not takes_any:
            raise InputError(source, at=f"argument {name!r}", problem="is unknown", remedy=_accepted(parameters))
        kind = parameters[name][0] if name in parameters else str
        try:
            values[name] = _convert(text, kind)
        except ValueError as error:
            raise InputError(
                source, at=f"argument {name!r}", problem=f"{text!r} {error}", remedy=_accepted(parameters)
            ) from error
    missing = [name for name, (_, default) in parameters.items() if default is _REQUIRED and name not in values]
    if missing:
        raise InputError(
            source, at=f"argument {missing[0]!r}", problem="is required", remedy=f"add --scheduler-arg {missing[0]}=…"
        )
    try:
        return policy(**values)
    except (TypeError, ValueError) as error:
        raise InputError(source, problem=f"refuses its arguments: {error}", remedy=_accepted(parameters)) from error
    except Exception as error:  # it is the user's code; whatever it raises, the policy cannot be made
        raise InputError(source, problem=f"cannot be made: {type(error).__name__}: {error}") from error


_REQUIRED = inspect.Parameter.empty
Parameters = dict[str, tuple[object, object]]
"""By name: the type, and the default or `_REQUIRED`."""


def _parameters(policy: type[Policy]) -> tuple[Parameters, bool]:
    """Return what the constructor takes by name, and whether it takes any other name too."""
    if policy.__init__ is object.__init__:
        return {}, False
    try:
        hints = typing.get_type_hints(policy.__init__)
    except NameError:  # an annotation that exists for the type checker only
        hints = {}
    parameters: Parameters = {}
    takes_any = False
    for parameter in list(inspect.signature(policy.__init__).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            parameters[parameter.name] = hints.get(parameter.name, _kind_of(parameter.default)), parameter.default
    return parameters, takes_any


def _kind_of(default: object) -> type:
    return type(default) if isinstance(default, bool | int | float | str) else str


def _convert(text: str, kind: object) -> Value:
    """Return `text` as a value of type `kind`. The ValueError's message continues "'text' …"."""
    choices = _alternatives(kind)
    if types.NoneType in choices and text.lower() in ("none", "null", ""):
        return None
    for choice in choices:
        if choice in _CONVERTERS:
            return _CONVERTERS[choice](text)
    raise ValueError(f"cannot be made a {_name_of(kind)} from text")


def _alternatives(kind: object) -> tuple[object, ...]:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return typing.get_args(kind)
    return (kind,)


def _to_bool(text: str) -> bool:
    if text.lower() in ("true", "yes", "on", "1"):
        return True
    if text.lower() in ("false", "no", "off", "0"):
        return False
    raise ValueError("is neither true nor false")


def _to_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("is not a whole number") from None


def _to_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number") from None


_CONVERTERS: dict[object, Callable[[str], Value]] = {bool: _to_bool, int: _to_int, float: _to_float, str: str}


def _accepted(parameters: Parameters) -> str:
    if not parameters:
        return "it takes no arguments"
    described = [
        f"{name} ({_name_of(kind)}, {'required' if default is _REQUIRED else f'default {default}'})"
        for name, (kind, default) in parameters.items()
    ]
    return f"it takes {', '.join(described)}"


def _name_of(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
