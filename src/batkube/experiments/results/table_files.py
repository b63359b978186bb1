"""Write the tables of an experiment, results.csv, timings.csv and experiment.json, from the folders of its runs.

results.csv has simulated numbers only, in the order of the grid: the same experiment gives the same bytes, also after
interruptions. Real times are in timings.csv.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from batkube.experiments.description.columns import (
    OVERALLOCATIONS,
    PACED_OVERALLOCATIONS,
    REPEAT,
    RUN,
    SEED,
    STATE,
    TIMING_COLUMNS,
    measured_columns,
    result_columns_among,
)
from batkube.experiments.plan.runs import Plan, PlannedRun
from batkube.experiments.results.result_files import typed_columns
from batkube.experiments.running.folder import (
    DESCRIPTION_FILE,
    PARQUET_FILE,
    RESULTS_FILE,
    TIMINGS_FILE,
    VERSION_KEY,
    ExperimentFolder,
    FinishedRun,
    RunState,
)
from batkube.files.replacement import replace_on_success
from batkube.kernel.errors import InputError
from batkube.outputs.files.manifest import write_json
from batkube.outputs.files.parquet import preload_parquet, write_parquet_file
from batkube.version import __version__


def write_tables(
    plan: Plan, folder: ExperimentFolder, command: Sequence[str], codes: Sequence[str], *, parquet: bool = True
) -> None:
    """Write all tables, of the finished runs; `codes` are the digests of the code that executed them."""
    measured = [(run, end, _run_numbers(folder.run_folder(run.name), end)) for run, end in _finished_runs(plan, folder)]
    header = _header([axis.name for axis in plan.experiment.axes], [row for _, _, row in measured])
    _write_csv(folder.path / RESULTS_FILE, header, (_result_row(run, end, row, header) for run, end, row in measured))
    _write_csv(
        folder.path / TIMINGS_FILE,
        (RUN, *TIMING_COLUMNS),
        ([run.name, *_timings(end, row)] for run, end, row in measured),
    )
    write_description(plan, folder, command, codes)
    if parquet:
        write_parquet(folder.path)


def write_description(plan: Plan, folder: ExperimentFolder, command: Sequence[str], codes: Sequence[str]) -> None:
    """Write experiment.json: the experiment, and the state of each finished run."""
    experiment = plan.experiment
    folder_path = experiment.source.parent
    content = {
        VERSION_KEY: __version__,
        "code": codes,
        "title": experiment.title,
        "description": experiment.description,
        "command": list(command),
        "file": str(experiment.source),
        "base": experiment.base,
        "axes": [{"name": axis.name, "values": axis.labels} for axis in experiment.axes],
        "seeds": experiment.seeds,
        "repeats": experiment.repeats,
        "figures": experiment.figures,
        "inputs": {os.path.relpath(path, folder_path): digest for path, digest in plan.inputs.items()},
        "total": len(plan.runs),
        "runs": [
            {
                "run": run.name,
                "axes": run.point.labels,
                "seed": run.point.seed,
                "repeat": run.point.repeat,
                "state": end.state.value,
                "digest": end.digest,
                "programs": end.programs,
                "failure": end.failure,
            }
            for run, end in _finished_runs(plan, folder)
        ],
    }
    with replace_on_success(folder.path / DESCRIPTION_FILE) as partial:
        write_json(partial, content)


def _finished_runs(plan: Plan, folder: ExperimentFolder) -> list[tuple[PlannedRun, FinishedRun]]:
    """Return the finished runs, in the order of the grid."""
    return [(run, end) for run in plan.runs if (end := folder.finished_run(run.name)) is not None]


def _header(axes: Sequence[str], measured: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the columns of results.csv: all that at least one of the runs has."""
    fixed = [RUN, *axes, SEED, REPEAT, STATE, *measured_columns()]
    more = [name for row in measured for name in result_columns_among(row) if name != OVERALLOCATIONS]
    return list(dict.fromkeys([*fixed, *more, OVERALLOCATIONS]))


def _run_numbers(run_folder: Path, end: FinishedRun) -> dict[str, str]:
    """Return a run's numbers by column; none for a failed run, whose numbers would be incomplete."""
    if end.state is RunState.FAILED:
        return {}
    try:
        with (run_folder / "schedule.csv").open(encoding="utf-8", newline="") as file:
            row = dict(next(csv.DictReader(file)))
        if PACED_OVERALLOCATIONS in row:
            row[OVERALLOCATIONS] = row[PACED_OVERALLOCATIONS]
        else:
            notes = json.loads((run_folder / "fidelity.json").read_bytes())
            row[OVERALLOCATIONS] = str(sum(note["count"] for note in notes if _is_overallocation(note)))
    except (OSError, ValueError, LookupError, TypeError, StopIteration, csv.Error) as error:
        # They were complete when the run ended, or when the experiment was resumed.
        problem = f"schedule.csv or fidelity.json cannot be read any more: {error or type(error).__name__}"
        remedy = "resume with the same command: it repeats the run"
        raise InputError(run_folder, problem=problem, remedy=remedy) from error
    return row


def _is_overallocation(note: dict[str, Any]) -> bool:
    """Return whether a fidelity note is about pods bound to a node without room (execution.kubelets)."""
    return note["severity"] == "violation" and "without room" in note["message"]


def _result_row(run: PlannedRun, end: FinishedRun, measured: dict[str, str], header: Sequence[str]) -> list[str]:
    point = run.point
    row = {
        **measured,
        RUN: run.name,
        **point.labels,
        SEED: str(point.seed),
        REPEAT: str(point.repeat),
        STATE: end.state.value,
    }
    return [row.get(name, "") for name in header]


def _timings(end: FinishedRun, measured: dict[str, str]) -> list[object]:
    real = end.real
    if real is None:
        return [""] * len(TIMING_COLUMNS)
    scheduler_cpu_s = sum(program["cpu_s"] for program in real["programs"])
    simulated_s = measured.get("makespan")
    pace = float(simulated_s) / real["run_s"] if simulated_s and real["run_s"] else None
    return [
        real["run_s"],
        real["cpu_s"],
        round(scheduler_cpu_s, 3),
        real["peak_memory_bytes"],
        "" if pace is None else f"{pace:.3f}",
    ]


def _write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with replace_on_success(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_parquet(folder: Path) -> None:
    """Write results.csv as Parquet if pyarrow is installed; otherwise remove an outdated Parquet file."""
    target = folder / PARQUET_FILE
    if not preload_parquet():
        target.unlink(missing_ok=True)
        return
    with replace_on_success(target) as partial:
        write_parquet_file(partial, typed_columns(folder))
