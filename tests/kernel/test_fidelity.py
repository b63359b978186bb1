"""Fidelity notes."""

from __future__ import annotations

from batkube.kernel.fidelity import FidelityNote, FidelityNotes, Severity


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
