"""Whether a policy looks at what no scheduler knows: `job.profile`, which tells how long a job will really take.

Its code is read and not watched: jobs are asked for their fields millions of times in a run, and a question that is
not put today may be put tomorrow. What is read is the policy's own methods, and the functions and classes of the same
module that these name.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from batkube.policies.interface import Policy

_ATTRIBUTE = "profile"


def profile_reads(policy: type[Policy]) -> list[str]:
    """Return the places, `file:line`, where the code of a policy reads an attribute called `profile`."""
    codes: dict[CodeType, None] = {}
    for kind in policy.__mro__:
        if kind is not object and kind is not Policy:
            _collect(kind, kind.__module__, codes)
    places = {(code.co_filename, line) for code in codes for line in _lines(code)}
    # The name alone: a run that is repeated elsewhere tells the same.
    return [f"{Path(file).name}:{line}" for file, line in sorted(places)]


def _collect(thing: object, module: str, codes: dict[CodeType, None]) -> None:
    """Add the code of a function or of a class, and of what of the same module it names."""
    for function in _functions(thing):
        if function.__module__ != module or function.__code__ in codes:
            continue
        for code in _nested(function.__code__):
            codes[code] = None
            for name in code.co_names:
                _collect(function.__globals__.get(name), module, codes)


def _functions(thing: object) -> Iterator[FunctionType]:
    if isinstance(thing, FunctionType):
        yield thing
    elif isinstance(thing, property):
        yield from _functions(thing.fget)
    elif isinstance(thing, staticmethod | classmethod):
        yield from _functions(thing.__func__)
    elif isinstance(thing, type):
        for value in vars(thing).values():
            if not isinstance(value, type):
                yield from _functions(value)


def _nested(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code and that of what is defined inside it: lambdas, comprehensions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _lines(code: CodeType) -> Iterator[int]:
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_ATTR" and instruction.argval == _ATTRIBUTE:
            line = instruction.positions.lineno if instruction.positions else None
            yield code.co_firstlineno if line is None else line
