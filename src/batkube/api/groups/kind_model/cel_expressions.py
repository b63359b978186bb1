"""Expressions in CEL that built-in kinds hold: whether they can be read and mean what they must.

The language itself is at home in `api.cel`, where the rules of custom resources are.
"""

from __future__ import annotations

from batkube.api.cel.checker import PATCH_MESSAGE_TYPES, Scope
from batkube.api.cel.functions.overloads import FULL_TYPE_NAMES
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.syntax.nodes import SourceError, Unsupported
from batkube.api.cel.types import DYN, CelType
from batkube.api.validation.problems import Problems


def check_expression(
    text: str, scope: Scope, path: str, problems: Problems, *results: str, messages: bool = False
) -> CelType:
    """Check an expression over the variables in `scope`, and return its type; it must be one of `results`, if any.

    `messages`: it may make those of a mutation. Kubernetes: apiserver/pkg/admission/plugin/cel/compile.go.
    """
    try:
        program = CelProgram(text, {**scope, **(PATCH_MESSAGE_TYPES if messages else {})})
    except SourceError as wrong:
        problems.invalid(path, text, f"compilation failed: {wrong}")
        return DYN
    except Unsupported:
        return DYN
    # Messages of the checker have short names for types that this one has not.
    name = FULL_TYPE_NAMES.get(str(program.type), str(program.type))
    if results and name not in results:
        wanted = results[0] if len(results) == 1 else f"one of [{' '.join(results)}]"
        problems.invalid(path, text, f"must evaluate to {wanted} but got {name}")
    return program.type
