"""Constructor arguments from the command line: `--scheduler-arg preempt=false` sets `preempt=False`.

The names and types are the parameters of the constructor and their annotations. A parameter without
annotation has the type of its default if that is a bool, an int, a float or a str, and is a str
otherwise.
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
    """Return `policy(**arguments)` with each text converted to the type of its parameter.

    Raises InputError if the constructor does not accept the arguments.
    """
    source = f"policy {spec!r}"
    parameters, takes_any_name = _parameters(policy)
    values: dict[str, Value] = {}
    for name, text in arguments.items():
        if name not in parameters and not takes_any_name:
            raise InputError(source, at=f"argument {name!r}", problem="is unknown", remedy=_usage(parameters))
        target = parameters[name][0] if name in parameters else str
        try:
            values[name] = _convert(text, target)
        except ValueError as error:
            raise InputError(
                source, at=f"argument {name!r}", problem=f"{text!r} {error}", remedy=_usage(parameters)
            ) from error
    missing = [name for name, (_, default) in parameters.items() if default is _REQUIRED and name not in values]
    if missing:
        raise InputError(
            source, at=f"argument {missing[0]!r}", problem="is required", remedy=f"add --scheduler-arg {missing[0]}=…"
        )
    try:
        return policy(**values)
    except (TypeError, ValueError) as error:
        raise InputError(source, problem=f"rejects its arguments: {error}", remedy=_usage(parameters)) from error
    except Exception as error:  # the user's code may raise anything
        problem = f"its constructor failed: {type(error).__name__}: {error}"
        raise InputError(source, problem=problem) from error


_REQUIRED = inspect.Parameter.empty
Parameters = dict[str, tuple[object, object]]
"""By name, the type and the default or `_REQUIRED`."""


def _parameters(policy: type[Policy]) -> tuple[Parameters, bool]:
    """Return the constructor's parameters by name, and whether it accepts other names too."""
    if policy.__init__ is object.__init__:
        return {}, False
    try:
        hints = typing.get_type_hints(policy.__init__)
    except NameError:  # an annotation imported for the type checker only
        hints = {}
    parameters: Parameters = {}
    takes_any_name = False
    for parameter in list(inspect.signature(policy.__init__).parameters.values())[1:]:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_any_name = True
        elif parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            parameters[parameter.name] = hints.get(parameter.name, _default_type(parameter.default)), parameter.default
    return parameters, takes_any_name


def _default_type(default: object) -> type:
    return type(default) if isinstance(default, bool | int | float | str) else str


def _convert(text: str, target: object) -> Value:
    """Return `text` converted to a type. The ValueError's message continues "'text' …"."""
    choices = _alternatives(target)
    if types.NoneType in choices and text.lower() in ("none", "null", ""):
        return None
    for choice in choices:
        if choice in _CONVERTERS:
            return _CONVERTERS[choice](text)
    raise ValueError(f"cannot be converted to {_name_of(target)}")


def _alternatives(target: object) -> tuple[object, ...]:
    if typing.get_origin(target) in (typing.Union, types.UnionType):
        return typing.get_args(target)
    return (target,)


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


def _usage(parameters: Parameters) -> str:
    if not parameters:
        return "it takes no arguments"
    described = [
        f"{name} ({_name_of(target)}, {'required' if default is _REQUIRED else f'default {default}'})"
        for name, (target, default) in parameters.items()
    ]
    return f"it takes {', '.join(described)}"


def _name_of(target: object) -> str:
    return target.__name__ if isinstance(target, type) else str(target)
