"""All tables of a run as typed columns: its CSV files, its journal, its fidelity notes and its deltas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from batkube.outputs.files.parquet import Column
from batkube.outputs.measures.run_data.jobs_frame import TEXT_COLUMNS
from batkube.outputs.measures.run_data.run_files import COUNT_PREFIX
from batkube.outputs.measures.run_data.text_table import read_table
from batkube.outputs.playback.deltas import Delta
from batkube.outputs.playback.model import Field, JournalEntry
from batkube.outputs.playback.playback import Playback

#: Columns of texts; a job or user may be called `007`. Other columns have texts if a cell is not a number.
_TEXT_COLUMNS = frozenset(
    {
        *TEXT_COLUMNS,
        "serves",
        "submitted_as",
        "pod",
        "node",
        "phase",
        "last_reason",
        "owner",
        "other",
        "zone",
        "rack",
        "pool",
        "driver",
        "device",
        "claim",
        "machine_id",
        "event_type",
        "batsim_version",
    }
)
#: The same, of single tables.
_TEXT_COLUMNS_OF_TABLES = frozenset({("devices", "pods")})
#: Columns of whole numbers.
_COUNT_COLUMNS = frozenset(
    {
        "requested_number_of_resources",
        "success",
        "priority",
        "evictions",
        "tries",
        "attempts",
        "machine",
        "memory",
        "pods",
        "gpus",
        "jobs",
        "jobs_success",
        "bindings",
        "bindings_refused",
        "pods_rejected",
        "new_pstate",
    }
)
#: How writers show that there is no number.
_NO_NUMBER = ("", "NA", "nan", "-nan")


class RunTable(NamedTuple):
    """A table, and the names of its float columns."""

    name: str
    columns: dict[str, Column]
    float_columns: frozenset[str] = frozenset()


def run_tables(run: Playback) -> Iterator[RunTable]:
    """Yield every table of a run."""
    for path in sorted(run.files.jobs_path.parent.glob("*.csv")):
        yield _csv_table(path)
    yield _journal_table(run.journal)
    yield _notes_table(run)
    yield _deltas_table(run)


def _csv_table(path: Path) -> RunTable:
    columns: dict[str, Column] = {}
    float_columns = set()
    for name, texts in read_table(path).columns.items():
        if name in _TEXT_COLUMNS or (path.stem, name) in _TEXT_COLUMNS_OF_TABLES:
            columns[name] = texts
            continue
        columns[name] = _numbers(texts)
        if name not in _COUNT_COLUMNS and not name.startswith(COUNT_PREFIX):
            float_columns.add(name)
    return RunTable(path.stem, columns, frozenset(float_columns))


def _numbers(texts: Sequence[str]) -> Column:
    """Parse texts as numbers. Return the texts if one of them is not a number."""
    numbers: dict[str, float | None] = dict.fromkeys(_NO_NUMBER)
    try:
        for text in texts:
            if text not in numbers:
                numbers[text] = int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return texts
    return [numbers[text] for text in texts]


def _journal_table(entries: Sequence[JournalEntry]) -> RunTable:
    """Return the journal as a table with a column per field."""
    names = dict.fromkeys(name for entry in entries for name in entry.fields)
    columns: dict[str, Column] = {"t": [entry.at for entry in entries], "event": [entry.event for entry in entries]}
    for name in sorted(names):
        columns[name] = [_scalar(entry.fields.get(name)) for entry in entries]
    return RunTable("journal", columns)


def _notes_table(run: Playback) -> RunTable:
    names = ("subject", "severity", "message", "count", "example")
    return RunTable("fidelity", {name: [_scalar(note.get(name)) for note in run.files.notes] for name in names})


def _deltas_table(run: Playback) -> RunTable:
    subjects = [_subject(run, delta) for delta in run.deltas]
    return RunTable(
        "deltas",
        {
            "t": [delta.at for delta in run.deltas],
            "kind": [delta.kind.value for delta in run.deltas],
            "subject": subjects,
            "number": [delta.number for delta in run.deltas],
            "node": [delta.node for delta in run.deltas],
            "text": [delta.text for delta in run.deltas],
            "count": [delta.count for delta in run.deltas],
        },
    )


def _subject(run: Playback, delta: Delta) -> str:
    if delta.kind.startswith("node-"):
        return run.nodes[delta.number].name
    if delta.kind.startswith("job-"):
        return run.jobs[delta.number].key
    return run.pods[delta.number].name


def _scalar(value: Field | list[object] | dict[str, object]) -> str | float | None:
    """Return a JSON value as a cell; lists and objects remain JSON text."""
    if value is None or isinstance(value, str | int | float):
        return value
    return json.dumps(value)
