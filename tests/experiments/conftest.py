"""A small workload, and experiments on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

#: Four jobs on up to two machines: 1 s, 2 s, 3 s and 4 s long, all submitted at once.
WORKLOAD = {
    "nb_res": 2,
    "jobs": [{"id": str(n), "subtime": 0, "res": 1 + n % 2, "profile": f"d{n}", "walltime": 9} for n in range(1, 5)],
    "profiles": {f"d{n}": {"type": "delay", "delay": n} for n in range(1, 5)},
}

#: The files of a run that do not tell how long it took in real time: the same for two runs of one scenario.
SIMULATED = ("jobs.csv", "schedule.csv", "pods.csv", "machine_states.csv", "journal.jsonl", "fidelity.json")


class Study:
    """A folder with a workload, in which experiment files are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "out"
        (folder / "w.json").write_text(json.dumps(WORKLOAD))

    def file(self, *, base: Mapping[str, object] | None = None, **words: object) -> Path:
        """Write an experiment file and return its path; without `base`, the small workload on two machines."""
        content = {"base": {"workload": "w.json", "platform": "2x1", **(base or {})}, **words}
        path = self.folder / "experiment.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A folder of its own with a small workload."""
    return Study(tmp_path)
