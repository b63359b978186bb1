"""consumed_energy.csv and pstate_changes.csv, with Batsim's columns and number format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from batkube.kernel.instants import Instant, as_float_s, format_seconds
from batkube.kernel.intervals import format_intervals


def write_consumed_energy(path: Path, readings: Iterable[tuple[Instant, float, str, float]]) -> None:
    """Write the energy that all machines had used at each reading: time, joules, event, lowest power of the work.

    The last column is the mean power since the reading before; NA if no time has passed (Batsim: export.cpp).
    """
    lines = ["time,energy,event_type,wattmin,epower"]
    last: tuple[Instant, float] = Instant(0), 0.0
    for at, joules, event, lowest_watts in readings:
        elapsed = at - last[0]
        power = f"{(joules - last[1]) / as_float_s(elapsed):.6f}" if elapsed > 0 else "NA"
        lines.append(f"{format_seconds(at)},{joules:.6f},{event},{lowest_watts:.6f},{power}")
        last = at, joules
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def write_pstate_changes(path: Path, changes: Sequence[tuple[Instant, int, int]]) -> None:
    """Write each change of machines' power states; -1 and -2 stand for switching on and off."""
    rows = [f"{as_float_s(at):g},{format_intervals(machines)},{pstate}" for at, machines, pstate in changes]
    path.write_text("\n".join(["time,machine_id,new_pstate", *rows, ""]), encoding="utf-8")
