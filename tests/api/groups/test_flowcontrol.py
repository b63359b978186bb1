"""Columns of FlowSchemas."""

from __future__ import annotations

from tests.api.groups.printed_cells import NOW

from batkube.api.groups.scheme.printing import PRINTERS
from batkube.api.printing import tables


def test_flow_schemas_are_listed_by_precedence() -> None:
    values = [{"metadata": {"name": name}, "spec": {"matchingPrecedence": rank}} for name, rank in (("a", 9), ("b", 1))]

    table = tables.make_table(PRINTERS["flowschemas.flowcontrol.apiserver.k8s.io"], values, NOW, metadata={})

    assert [row["cells"][0] for row in table["rows"]] == ["b", "a"]
