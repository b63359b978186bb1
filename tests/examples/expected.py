"""The examples and what they must give."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
SCENARIOS = sorted(EXAMPLES.glob("*/scenario.yaml"))
#: The outputs of an example that are kept beside it and compared byte for byte.
FILES = ("jobs.csv", "schedule.csv", "pods.csv", "machine_states.csv", "journal.jsonl", "fidelity.json")
