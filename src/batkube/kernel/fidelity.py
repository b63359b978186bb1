"""Fidelity notes: what the user requested that is not fully modelled.

Each note is counted, shown at the end of the run and written to fidelity.json. A *warning* means "check this before
trusting the result". A *violation* means that the scheduler did something that no cluster allows; the simulator
rejected it, as a real cluster would.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Severity(enum.StrEnum):
    """How serious a note is."""

    WARNING = "warning"
    VIOLATION = "violation"


@dataclass(frozen=True, slots=True)
class FidelityNote:
    """One kind of limitation or violation; equal notes are counted together."""

    subject: str
    message: str
    severity: Severity = Severity.WARNING

    def message_with_count(self, count: int) -> str:
        """Return the message with its count."""
        return f"{self.message} ({'once' if count == 1 else f'{count:,} times'})"


class FidelityNotes:
    """The notes of one run, each with its count and its first example."""

    def __init__(self) -> None:
        self._counts: dict[FidelityNote, int] = {}
        self._examples: dict[FidelityNote, str] = {}

    def add(self, note: FidelityNote, example: str = "", count: int = 1) -> None:
        """Count `note`; keep `example` if it is the first one."""
        self._counts[note] = self._counts.get(note, 0) + count
        self._examples.setdefault(note, example)

    @property
    def violations(self) -> int:
        """How often the scheduler did something that no cluster allows."""
        return sum(count for note, count in self._counts.items() if note.severity is Severity.VIOLATION)

    def rows(self) -> list[dict[str, str | int]]:
        """Return the notes in the order in which they were first added, as rows of fidelity.json."""
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
