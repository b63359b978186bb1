"""The cache of compiled expressions."""

from __future__ import annotations

import weakref

from batkube.api.admission.dynamic.expressions import ExpressionCache
from batkube.kernel.fidelity import FidelityNotes


def test_expressions_of_deleted_policies_are_not_cached_for_ever() -> None:
    expressions = ExpressionCache(FidelityNotes())
    programs = [weakref.ref(expressions.program(f"object.data.size() < {number}")) for number in range(2000)]

    assert sum(program() is not None for program in programs) < 1000
    assert expressions.program("1 + 1")({}) == 2
