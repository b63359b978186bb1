"""Fidelity notes: what was asked for and is not fully modelled.

Nothing passes silently. A note is counted, shown at the end of the run and written to fidelity.json. *warning* means
"check this before trusting the result"; *violation* means the scheduler did something no cluster allows (it was
refused, as a real cluster would have).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Severity(enum.StrEnum):
    """How much a note should worry the reader."""

    WARNING = "warning"
    VIOLATION = "violation"


@dataclass(frozen=True, slots=True)
class FidelityNote:
    """One kind of thing not fully modelled; equal notes are counted together."""

    subject: str
    message: str
    severity: Severity = Severity.WARNING

    def message_with_count(self, count: int) -> str:
        """Return the message with how often it was so, for people."""
        return f"{self.message} ({'once' if count == 1 else f'{count:,} times'})"


class FidelityNotes:
    """The notes of one run, each with how often it was made and the first example."""

    def __init__(self) -> None:
        self._counts: dict[FidelityNote, int] = {}
        self._examples: dict[FidelityNote, str] = {}

    def add(self, note: FidelityNote, example: str = "", count: int = 1) -> None:
        """Count `note`, keeping the first `example` of it."""
        self._counts[note] = self._counts.get(note, 0) + count
        self._examples.setdefault(note, example)

    @property
    def violations(self) -> int:
        """How often the scheduler did what no cluster allows."""
        return sum(count for note, count in self._counts.items() if note.severity is Severity.VIOLATION)

    def rows(self) -> list[dict[str, str | int]]:
        """Return the notes in the order first made, as fidelity.json holds them."""
        return [
            {
                "subject": note.subject,
                "severity": note.severity.value,
                "message": note.message,
                "count": count,
                "example": self._examples[note],
            }
            for note, count in self._counts.items()
        ]
