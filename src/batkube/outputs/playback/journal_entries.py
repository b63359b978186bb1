"""Reads the entries of journal.jsonl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.instants import LATEST_NS, Instant
from batkube.outputs.playback.model import JournalEntry


def read_journal(path: Path) -> tuple[JournalEntry, ...]:
    """Return the entries of a journal. Raises InputError."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    entries = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file):
                entries.append(_entry(path, number, decoder.decode(line)))
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = f"is not a JSON object: {error}"
        raise InputError(path, at=f"line {len(entries) + 1}", problem=problem) from error
    return tuple(entries)


def _entry(path: Path, number: int, fields: dict[str, Any]) -> JournalEntry:
    at, event = fields.pop("t", None), fields.pop("event", None)
    if type(at) is not int or abs(at) > LATEST_NS or not isinstance(event, str):
        problem = "has no `t` (nanoseconds) or no `event`"
        raise InputError(path, at=f"line {number + 1}", problem=problem, remedy="use the journal of a run, unedited")
    return JournalEntry(number, Instant(at), event, fields)
