"""Validation of CEL expressions in built-in kinds.

The interpreter itself is `api.cel`.
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

    `messages`: it may create messages of mutations. Kubernetes: apiserver/pkg/admission/plugin/cel/compile.go.
    """
    try:
        program = CelProgram(text, {**scope, **(PATCH_MESSAGE_TYPES if messages else {})})
    except SourceError as wrong:
        problems.invalid(path, text, f"compilation failed: {wrong}")
        return DYN
    except Unsupported:
        return DYN
    # The checker's error messages abbreviate type names; this message does not.
    name = FULL_TYPE_NAMES.get(str(program.type), str(program.type))
    if results and name not in results:
        expected = results[0] if len(results) == 1 else f"one of [{' '.join(results)}]"
        problems.invalid(path, text, f"must evaluate to {expected} but got {name}")
    return program.type
