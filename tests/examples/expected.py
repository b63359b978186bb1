"""The examples and their expected outputs."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
SCENARIOS = sorted(EXAMPLES.glob("*/scenario.yaml"))
#: The outputs of an example that are compared byte for byte with the files kept in its folder.
FILES = (
    "jobs.csv",
    "schedule.csv",
    "pods.csv",
    "nodes.csv",
    "machine_states.csv",
    "journal.jsonl",
    "fidelity.json",
)
#: Each has its expected results.csv in `expected/NAME.csv`, without the names of runs, which new keys change.
EXPERIMENTS = sorted(EXAMPLES.glob("experiments/*.yaml"))


def without_run_names(results: Path) -> str:
    """Return results.csv without its first column."""
    return "".join(f"{line.partition(',')[2]}\n" for line in results.read_text(encoding="utf-8").splitlines())
