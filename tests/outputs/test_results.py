"""The interface for notebooks."""

from __future__ import annotations

import sys
from subprocess import run as run_program


def test_neither_pandas_nor_matplotlib_is_imported_before_it_is_needed() -> None:
    program = (
        "import sys, batkube.outputs.results, batkube.outputs.gantt.chart, "
        "batkube.cli.commands.gantt, batkube.cli.commands.compare;"
        "sys.exit('pandas' in sys.modules or 'matplotlib' in sys.modules)"
    )

    assert run_program([sys.executable, "-c", program], check=False).returncode == 0
