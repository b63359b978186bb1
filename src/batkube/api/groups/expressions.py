"""Expressions in CEL that built-in kinds hold: whether they can be read and mean a truth value.

The language itself is at home in `api.cel`, where the rules of custom resources are.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.api.cel.checking import MESSAGES
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.trees import SourceError, Unsupported
from batkube.api.cel.types import DYN
from batkube.api.checks.problems import Problems


def check_expression(
    text: str,
    variables: Sequence[str],
    path: str,
    problems: Problems,
    result: str = "bool",
    *,
    messages: bool = False,
) -> None:
    """Check an expression over these variables, whose types are not known here; "" allows any `result`.

    `messages`: it may make those of a mutation. Kubernetes: apiserver/pkg/admission/plugin/cel/compile.go.
    """
    try:
        program = CelProgram(text, {**dict.fromkeys(variables, DYN), **(MESSAGES if messages else {})})
    except SourceError as wrong:
        problems.invalid(path, text, f"compilation failed: {wrong}")
        return
    except Unsupported:
        return
    # What is not known before it is evaluated cannot be a message.
    if result and str(program.type) != result and (messages or program.type.name != "dyn"):
        problems.invalid(path, text, f"must evaluate to {result} but got {program.type}")
