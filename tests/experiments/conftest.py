"""A small workload, and a folder for experiments with it."""

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

#: The files of a run without real times: two runs of one scenario give the same bytes.
SIMULATED = ("jobs.csv", "schedule.csv", "pods.csv", "machine_states.csv", "journal.jsonl", "fidelity.json")


class Study:
    """A folder with a workload, in which experiment files are written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "out"
        (folder / "w.json").write_text(json.dumps(WORKLOAD))

    def file(self, *, base: Mapping[str, object] | None = None, **keys: object) -> Path:
        """Write an experiment file and return its path; without `base`, the small workload on two machines."""
        content = {"base": {"workload": "w.json", "platform": "2x1", **(base or {})}, **keys}
        path = self.folder / "experiment.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A new folder with a small workload, which is the current one, so that its files may name code."""
    monkeypatch.chdir(tmp_path)
    return Study(tmp_path)
