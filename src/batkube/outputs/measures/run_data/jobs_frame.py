"""jobs.csv as a frame with a fixed set of columns, whichever program wrote it.

Columns are found by name, in our own files, Batsim v4's, those of the 2020 emulation (with additional columns) and
Batsim 1.x's (with `hacky_job_id`, without `profile`, `final_state` and `metadata`). A missing column is derived if
possible and otherwise empty; unknown columns are kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from batkube.kernel.errors import InputError
from batkube.kernel.intervals import parse_intervals
from batkube.outputs.measures.run_data.text_table import TextTable, read_table

if TYPE_CHECKING:
    import pandas as pd

#: Text columns; empty text if the file has no value.
TEXT_COLUMNS = (
    "job_id",
    "workload_name",
    "profile",
    "final_state",
    "allocated_resources",
    "metadata",
    "user",
    "scheduler",
)
#: Number columns; NaN if the file has no value. Times are in seconds.
NUMBER_COLUMNS = (
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "consumed_energy",
    "priority",
    "scheduled_time",
    "evictions",
    "cpu",
    "tries",
    "attempts",
    "work_lost",
)
#: Number columns that only some files have.
_EXTRA_NUMBER_COLUMNS = ("admitted_time", "member_wait")
#: Number columns that are counts: whole numbers, <NA> if the file has no value.
COUNT_COLUMNS = ("requested_number_of_resources", "success", "priority", "evictions", "tries", "attempts")
_KNOWN_COLUMNS = TEXT_COLUMNS + NUMBER_COLUMNS + _EXTRA_NUMBER_COLUMNS
_REQUIRED_COLUMNS = ("job_id", "submission_time", "starting_time", "finish_time", "allocated_resources")


def read_jobs(path: Path) -> pd.DataFrame:
    """Return the file's jobs with every column of `TEXT_COLUMNS` and `NUMBER_COLUMNS`, then the file's others."""
    import pandas as pd

    table = read_table(path)
    table.require(_REQUIRED_COLUMNS, "use the jobs.csv of a run of Batkube or Batsim, or its folder")
    _check_allocations(table)
    nan = float("nan")
    frame = pd.DataFrame(
        {name: table.text(name) if name in table.columns else "" for name in TEXT_COLUMNS}
        | {name: table.numbers(name) if name in table.columns else nan for name in NUMBER_COLUMNS}
        | {name: table.numbers(name) for name in _EXTRA_NUMBER_COLUMNS if name in table.columns}
        | {name: table.text(name) for name in table.columns if name not in _KNOWN_COLUMNS}
    )
    _derive_times(frame)
    if "final_state" not in table.columns:
        frame["final_state"] = _derived_states(frame)
    return frame.astype(dict.fromkeys(COUNT_COLUMNS, "Int64"))


def _check_allocations(table: TextTable) -> None:
    checked: set[str] = set()
    for row, text in enumerate(table.columns["allocated_resources"]):
        if text in checked:
            continue
        checked.add(text)
        try:
            parse_intervals(text)
        except ValueError as error:
            raise InputError(table.path, at=table.place(row, "allocated_resources"), problem=str(error)) from error


def _derive_times(frame: pd.DataFrame) -> None:
    # Batsim's own definitions: docs/output-jobs.rst.
    frame["execution_time"] = frame["execution_time"].fillna(frame["finish_time"] - frame["starting_time"])
    frame["waiting_time"] = frame["waiting_time"].fillna(frame["starting_time"] - frame["submission_time"])
    frame["turnaround_time"] = frame["turnaround_time"].fillna(frame["finish_time"] - frame["submission_time"])


def _derived_states(frame: pd.DataFrame) -> pd.Series[str]:
    """Derive final states from `success`, the only one in Batsim 1.x: a job that used its requested time reached it."""
    import pandas as pd

    states = pd.Series("COMPLETED_FAILED", index=frame.index, dtype=object)
    at_walltime = (frame["requested_time"] > 0) & (frame["execution_time"] >= frame["requested_time"] - 1e-6)
    states[at_walltime] = "COMPLETED_WALLTIME_REACHED"
    states[frame["success"] == 1] = "COMPLETED_SUCCESSFULLY"
    states[frame["starting_time"].isna()] = "REJECTED"
    return states
