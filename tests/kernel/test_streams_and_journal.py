from __future__ import annotations

import io
import json

from batkube.kernel.fidelity import FidelityNote, FidelityNotes, Severity
from batkube.kernel.instants import Instant
from batkube.kernel.journal import Journal
from batkube.kernel.streams import Streams


def test_a_stream_depends_on_the_seed_and_its_name_alone() -> None:
    alone, among_others = Streams(7), Streams(7)
    for name in ("arrivals", "sizes"):
        among_others.named(name).random()

    drawn = [alone.named("policy").random() for _ in range(3)]

    assert drawn == [among_others.named("policy").random() for _ in range(3)]
    assert drawn != [Streams(8).named("policy").random() for _ in range(3)]
    assert drawn != [Streams(7).named("latency/pull").random() for _ in range(3)]


def test_the_journal_is_one_json_object_a_line_and_its_digest_covers_every_byte() -> None:
    sink, twin_sink, other_sink = io.BytesIO(), io.BytesIO(), io.BytesIO()
    journal, twin, other = Journal(sink), Journal(twin_sink), Journal(other_sink)
    for book in (journal, twin):
        for number in range(2000):
            book.append(Instant(number), "submit", job=f"w0!{number}")
    for number in range(2000):
        other.append(Instant(number), "submit", job=f"w0!{number + (number == 1999)}")

    assert journal.digest == twin.digest != other.digest
    lines = sink.getvalue().splitlines()
    assert len(lines) == 2000
    assert json.loads(lines[3]) == {"t": 3, "event": "submit", "job": "w0!3"}


def test_equal_notes_are_counted_together_with_their_first_example() -> None:
    notes = FidelityNotes()
    note = FidelityNote("scheduler", "bound twice", Severity.VIOLATION)

    notes.add(note, example="job 1")
    notes.add(note, example="job 2")

    assert notes.rows() == [
        {
            "subject": "scheduler",
            "severity": "violation",
            "message": "bound twice",
            "count": 2,
            "example": "job 1",
        }
    ]
