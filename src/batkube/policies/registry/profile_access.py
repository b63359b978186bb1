"""Finds code of a policy that reads `job.profile`, a job's true future, which no scheduler knows.

The code is analysed instead of observed: fields of jobs are read millions of times in a run, and a
run need not execute every line. Analysed are the policy's methods, and the functions and classes of
the same module that these name.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from batkube.policies.interface import Policy

_ATTRIBUTE = "profile"


def profile_reads(policy: type[Policy]) -> list[str]:
    """Return the places (`file:line`) where the code of a policy reads an attribute named `profile`."""
    codes: dict[CodeType, None] = {}
    for base in policy.__mro__:
        if base is not object and base is not Policy:
            _collect(base, base.__module__, codes)
    places = {(code.co_filename, line) for code in codes for line in _lines(code)}
    # Without the folder, so that a rerun elsewhere has the same output.
    return [f"{Path(file).name}:{line}" for file, line in sorted(places)]


def _collect(definition: object, module: str, codes: dict[CodeType, None]) -> None:
    """Add the code of a function or class, and of the definitions of the same module that it names."""
    for function in _functions(definition):
        if function.__module__ != module or function.__code__ in codes:
            continue
        for code in _nested(function.__code__):
            codes[code] = None
            for name in code.co_names:
                _collect(function.__globals__.get(name), module, codes)


def _functions(definition: object) -> Iterator[FunctionType]:
    if isinstance(definition, FunctionType):
        yield definition
    elif isinstance(definition, property):
        yield from _functions(definition.fget)
    elif isinstance(definition, staticmethod | classmethod):
        yield from _functions(definition.__func__)
    elif isinstance(definition, type):
        for value in vars(definition).values():
            if not isinstance(value, type):
                yield from _functions(value)


def _nested(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of everything defined inside it, such as lambdas."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _lines(code: CodeType) -> Iterator[int]:
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_ATTR" and instruction.argval == _ATTRIBUTE:
            line = instruction.positions.lineno if instruction.positions else None
            yield code.co_firstlineno if line is None else line
