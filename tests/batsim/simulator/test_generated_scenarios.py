"""Our Batsim and the real one have the same messages and files in generated scenarios.

Needs a `batsim` on the PATH (docs/how-to/coming-from-batsim.md); `BATKUBE_SCENARIOS=N` uses N scenarios per family
instead of a few. `scenarios.py` avoids known differences, and says why. Two others are ignored here:

* ratios to the length of jobs of a few microseconds: Batsim's internal messages may take 0.1 ns, ours take none;
* without a scheduler, the order in which jobs start at 0, which is that of a hash table.
"""

from __future__ import annotations

import dataclasses
import math
import os
from pathlib import Path

import pytest
from tests.batsim.real_batsim import real_batsim, run_real_batsim
from tests.batsim.recordings import ANY_SCENARIO, arguments_of, comparable, differences, read_table
from tests.batsim.simulator.scenarios import FAMILIES, ScenarioGenerator

from batkube.batsim.simulator.run import run_batsim
from batkube.batsim.simulator.simulation import UnfinishedJobs
from batkube.kernel.errors import RunFailed

SCENARIOS = int(os.environ.get("BATKUBE_SCENARIOS", "5"))
TABLES = ("jobs", "schedule", "machine_states", "consumed_energy", "pstate_changes")
#: The ratios of shorter jobs are not compared.
SHORTEST_S = 0.01


@pytest.mark.parametrize("seed", range(SCENARIOS))
@pytest.mark.parametrize("family", FAMILIES)
def test_a_generated_scenario_has_the_same_messages_and_files_as_in_the_real_batsim(
    family: str, seed: int, tmp_path: Path
) -> None:
    real_batsim()
    scenario = ScenarioGenerator(tmp_path, family, seed).scenario()
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()

    their_scheduler = scenario.scheduler()
    code = run_real_batsim(scenario.arguments, theirs, their_scheduler)

    our_scheduler = scenario.scheduler()
    failure = None
    try:
        arguments = dataclasses.replace(arguments_of(scenario.arguments), prefix=str(ours / "out"))
        run_batsim(arguments, scheduler=our_scheduler)
    except UnfinishedJobs:
        pass
    except RunFailed as error:
        failure = error
    if our_scheduler is not None and their_scheduler is not None:
        for number, (mine, other) in enumerate(zip(our_scheduler.messages, their_scheduler.messages, strict=False)):
            assert is_alike(comparable(mine), comparable(other)), f"message {number}\n{mine}\n{other}"
        assert len(our_scheduler.messages) == len(their_scheduler.messages)
    assert (failure is None) == (code == 0), failure
    if code == 0:
        for name in TABLES:
            assert table_differences(ours, theirs, name, has_scheduler=scenario.has_scheduler) == [], name


def is_alike(ours: object, theirs: object) -> bool:
    """Return whether two messages are equal: dates to the microsecond, energies to a millionth."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(is_alike(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_alike, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-6 if ours > 1000 else 0, abs_tol=2.1e-6)
    return ours == theirs


def table_differences(ours: Path, theirs: Path, name: str, *, has_scheduler: bool) -> list[str]:
    """Return the differences between a file of ours and Batsim's."""
    mine, other = (folder / f"out_{name}.csv" for folder in (ours, theirs))
    if not mine.exists() and not other.exists():
        return []
    short = {row[0] for row in read_table(theirs / "out_jobs.csv")[1:] if row[9] and float(row[9]) < SHORTEST_S}
    tables = [_without_ratios(read_table(path), short) for path in (mine, other)]
    if name == "machine_states" and not has_scheduler:
        tables = [[row for row in table if row[0] != "0"] for table in tables]
    return list(differences(*tables, ANY_SCENARIO))


def _without_ratios(table: list[list[str]], short: set[str]) -> list[list[str]]:
    """Return a table without the ratios of short jobs."""
    header, *rows = table
    ratios = [place for place, name in enumerate(header) if name == "stretch" or "slowdown" in name]
    for row in rows:
        if short and (header[0] != "job_id" or row[0] in short):
            for place in ratios:
                row[place] = ""
    return [header, *rows]
