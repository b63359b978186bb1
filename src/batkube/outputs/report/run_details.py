"""Parts that reports share: tables of fidelity notes, programs and inputs, and the last lines of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from batkube.outputs.pages.html_tables import Cell, Heading, html_table
from batkube.outputs.pages.markup import Markup

_TAIL_BYTES = 64 * 1024


def last_lines(path: Path, count: int = 20) -> list[str]:
    """Return the last lines of a log, with invalid UTF-8 replaced; none if it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return []
    return text.splitlines()[-count:]


def notes_table(notes: Sequence[Mapping[str, Any]], *, of_runs: int = 0) -> Markup:
    """Return fidelity notes as a table; `of_runs` is the number of runs if there are several."""
    heads = [Heading("severity"), Heading("subject"), Heading("message"), Heading("times", is_number=True)]
    heads += [Heading("runs", f"of {of_runs:,}", is_number=True)] * bool(of_runs) + [Heading("for example")]
    rows: list[list[Any]] = []
    for note in notes:
        severity = str(note.get("severity", ""))
        cells: list[Any] = [Cell(severity, kind="bad" if severity == "violation" else "warning")]
        count = int(note.get("count") or 0)
        cells += [str(note.get("subject", "")), str(note.get("message", "")), Cell(f"{count:,}", float(count))]
        cells += [str(note.get("runs", ""))] * bool(of_runs) + [str(note.get("example", ""))]
        rows.append(cells)
    return html_table(heads, rows)


def programs_table(programs: Sequence[Mapping[str, Any]], costs: Sequence[Mapping[str, Any]] = ()) -> Markup:
    """Return a table of the scheduler programs: version, hash of the executable, and its cost if known."""
    heads = [Heading("program"), Heading("version"), Heading("serves")]
    if costs:
        heads += [Heading("CPU time", "s", is_number=True), Heading("peak memory", "MiB", is_number=True)]
    rows: list[list[Any]] = []
    for number, program in enumerate(programs):
        cells: list[Any] = [str(program.get("name", "")), str(program.get("version") or "–")]
        cells.append(", ".join(str(name) for name in program.get("serves") or ()) or "–")
        if costs:
            cost = costs[number] if number < len(costs) else {}
            cells += [f"{cost['cpu_s']:,.2f}" if "cpu_s" in cost else "–"]
            cells += [f"{cost['peak_memory_bytes'] / 2**20:,.0f}" if "peak_memory_bytes" in cost else "–"]
        rows.append([*cells, Cell(str(program.get("sha256", "")), kind="mono")])
    return html_table([*heads, Heading("SHA-256")], rows, sortable=False)


def inputs_table(inputs: Sequence[tuple[str, str]]) -> Markup:
    """Return input files and their hashes."""
    heads = [Heading("file"), Heading("SHA-256")]
    return html_table(heads, [[path, Cell(digest, kind="mono")] for path, digest in inputs], sortable=False)
