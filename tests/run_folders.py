"""Hand-written output folders, so that each test contains the run that it uses."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from batkube.outputs.results import Results
from batkube.outputs.writers.jobs_csv import BATKUBE_COLUMNS, BATSIM_COLUMNS, GANG_COLUMNS
from batkube.outputs.writers.streaming_csv import POD_COLUMNS

#: job id, submission, start, finish, machines; further cells by column name.
Row = tuple[str, float, float | None, float | None, str] | tuple[str, float, float | None, float | None, str, dict]


class MakeRun(Protocol):
    def __call__(
        self,
        rows: Sequence[Row],
        *,
        name: str = "run",
        manifest: Mapping[str, object] | None = None,
        pods: Sequence[Mapping[str, object]] = (),
    ) -> Results: ...


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """A function that writes the folder of a run from rows (id, submission, start, finish, machines, other cells)."""

    def make(
        rows: Sequence[Row],
        *,
        name: str = "run",
        manifest: Mapping[str, object] | None = None,
        pods: Sequence[Mapping[str, object]] = (),
    ) -> Results:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        cells = [_cells(*row) for row in rows]
        gangs = GANG_COLUMNS if any(name in row for row in cells for name in GANG_COLUMNS) else ()
        _write(folder / "jobs.csv", BATSIM_COLUMNS + BATKUBE_COLUMNS + gangs, cells)
        if manifest is not None:
            (folder / "manifest.json").write_text(json.dumps(manifest))
        if pods:
            _write(folder / "pods.csv", POD_COLUMNS, pods)
        return Results(folder)

    return make


class SharedMachines(Protocol):
    def __call__(self, cpu_milli: int, machines: int = 1) -> dict[str, object]: ...


@pytest.fixture
def shared_machines() -> SharedMachines:
    """A function that returns the manifest of machines that jobs share by their cpu requests."""

    def manifest(cpu_milli: int, machines: int = 1) -> dict[str, object]:
        entries = [{"name": f"node-{number}", "cpu_milli": cpu_milli} for number in range(machines)]
        return {"resources": "requests", "platform": {"machines": entries}}

    return manifest


def _cells(
    job_id: str,
    submit: float,
    start: float | None,
    finish: float | None,
    machines: str,
    others: Mapping[str, object] | None = None,
) -> dict[str, object]:
    cells: dict[str, object] = {
        "job_id": job_id,
        "workload_name": "w0",
        "profile": "p",
        "submission_time": submit,
        "requested_number_of_resources": 1,
        "requested_time": -1,
        "success": 1,
        "final_state": "COMPLETED_SUCCESSFULLY",
        "allocated_resources": machines,
    }
    if start is not None:
        cells |= {"starting_time": start, "waiting_time": start - submit}
    if start is not None and finish is not None:
        cells |= {"execution_time": finish - start, "finish_time": finish, "turnaround_time": finish - submit}
    return cells | dict(others or {})


def _write(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
