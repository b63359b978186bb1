"""Rewrite the examples' expected outputs (`make golden`). Review the difference: it is a change of results."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import batkube
from batkube.scenarios.files import read_scenario_file
from batkube.scenarios.keys import make_scenario
from batkube.simulation.run import execute

sys.path.insert(0, str(Path(__file__).parent))
from expected import EXAMPLES, EXPERIMENTS, FILES, SCENARIOS, without_run_names

os.chdir(EXAMPLES.parent)
for scenario in SCENARIOS:
    target = scenario.parent / "expected"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        relative = scenario.relative_to(EXAMPLES.parent)
        execute(make_scenario(read_scenario_file(relative), relative), Path(folder) / "out")
        for name in FILES:
            shutil.copy(Path(folder) / "out" / name, target / name)
    print(f"wrote {target.relative_to(scenario.parent.parent.parent)}")
for experiment in EXPERIMENTS:
    target = experiment.parent / "expected" / f"{experiment.stem}.csv"
    with tempfile.TemporaryDirectory() as folder:
        batkube.experiment(experiment, folder)
        target.write_text(without_run_names(Path(folder) / "results.csv"), encoding="utf-8")
    print(f"wrote {target.relative_to(EXAMPLES.parent)}")
