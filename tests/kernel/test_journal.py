from __future__ import annotations

import io
import json

from batkube.kernel.instants import Instant
from batkube.kernel.journal import Journal


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
