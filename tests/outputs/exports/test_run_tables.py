"""Parquet files have every table of a run, with typed columns."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from tests.outputs.playback.saturated_runs import EVENTS, a_run

from batkube.outputs.exports.export import save_export
from batkube.outputs.exports.formats import ExportFormat
from batkube.outputs.playback.playback import Playback
from batkube.outputs.results import Results

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_run(tmp_path_factory.mktemp("tables") / "out", events=EVENTS)


@pytest.fixture(scope="module")
def tables(folder: Path) -> Path:
    path = folder.with_suffix(".parquet")
    save_export(folder, path, ExportFormat.PARQUET)
    return path


@pytest.mark.parametrize("name", ["jobs", "pods", "nodes", "machine_states"])
def test_a_table_has_the_values_of_its_csv_file(folder: Path, tables: Path, name: str) -> None:
    frame = getattr(Results(folder), name)
    columns = parquet.read_table(tables / f"{name}.parquet").to_pydict()

    assert set(columns) >= set(frame.columns)
    for column in frame.columns:
        cells = frame[column].astype("Int64") if column == "machine" else frame[column]  # text in Python
        assert columns[column] == [None if pd.isna(cell) else cell for cell in cells], column


def test_the_journal_and_the_deltas_are_tables(folder: Path, tables: Path) -> None:
    journal = parquet.read_table(tables / "journal.parquet").to_pylist()
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_bytes().splitlines()]
    deltas = parquet.read_table(tables / "deltas.parquet").to_pydict()

    assert [{name: cell for name, cell in row.items() if cell is not None} for row in journal] == lines
    run = Playback.read(folder)
    assert deltas["t"] == [delta.at for delta in run.deltas]
    assert set(deltas["subject"]) == {
        *(node.name for node in run.nodes), *(job.key for job in run.jobs), *(pod.name for pod in run.pods),
    }  # fmt: skip


def test_names_that_look_like_numbers_stay_texts_and_empty_columns_keep_their_types(tmp_path: Path) -> None:
    workload = tmp_path / "w.json"
    job = {"id": "007", "subtime": 0, "res": 1, "profile": "d", "user": "12"}
    workload.write_text(json.dumps({"nb_res": 1, "jobs": [job], "profiles": {"d": {"type": "delay", "delay": 5}}}))
    save_export(a_run(tmp_path / "out", workload=workload), tmp_path / "p.parquet", ExportFormat.PARQUET)

    jobs = parquet.read_table(tmp_path / "p.parquet" / "jobs.parquet")
    nodes = parquet.read_table(tmp_path / "p.parquet" / "nodes.parquet")

    assert (jobs["job_id"].to_pylist(), jobs["user"].to_pylist()) == (["007"], ["12"])
    types = {field.name: str(field.type) for field in (*jobs.schema, *nodes.schema)}
    names = ("stretch", "attempts", "memory", "gpus", "removed", "zone")
    assert [types[name] for name in names] == ["double", "int64", "int64", "int64", "double", "string"]
