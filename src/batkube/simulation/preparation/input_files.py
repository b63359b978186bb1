"""The files that a run read: those that its scenario names, and those that these name in turn.

Each has a place in a *pack*, the folder `inputs` of a run: a number for what the scenario names, and below it what that
names, as they lay to one another. So a workload finds its traces there as it did at home.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from batkube.scenarios.relocation import files_in_command_lines
from batkube.scenarios.scenario import Scenario
from batkube.workloads.companion_files import companion_files
from batkube.workloads.synthetic.recipes import WorkloadRecipe

#: Where a run's folder has its inputs.
PACK_FOLDER = "inputs"


class InputFile(NamedTuple):
    """A file that a run read."""

    path: Path
    #: Where it lies in a pack: `0/workload.json`.
    packed_path: str


def input_files_of(scenario: Scenario) -> list[InputFile]:
    """Return the files that a run reads, in groups: one that its scenario names, then those that this one names.

    One that is not there is passed over: whoever reads it says so better.
    """
    commands = (scenario.scheduler, *scenario.more_schedulers, *scenario.attach, scenario.controllers or "")
    named = [*scenario.input_files, *files_in_command_lines([*commands, *scenario.scheduler_args.values()])]
    if scenario.events and not isinstance(scenario.events, Path):
        named += _files_in_events(scenario.events)
    groups: dict[Path, list[Path]] = {path: [] for path in named if path.is_file()}
    for source in scenario.workloads:
        owner = source.trace if isinstance(source, WorkloadRecipe) else source
        if owner is not None and owner in groups:
            groups[owner] += companion_files(owner)
    if isinstance(scenario.events, Path) and scenario.events in groups:
        groups[scenario.events] += _files_in_events(scenario.events)
    return _assign_packed_paths(groups)


def _files_in_events(events: Path | tuple[object, ...]) -> list[Path]:
    from batkube.workloads.events.reader import files_in_entries, files_in_events_file

    return files_in_events_file(events) if isinstance(events, Path) else files_in_entries(events)


def _assign_packed_paths(groups: dict[Path, list[Path]]) -> list[InputFile]:
    files: list[InputFile] = []
    for number, (owner, others) in enumerate(groups.items()):
        members = [owner, *others]
        root = os.path.commonpath([path.absolute().parent for path in members])
        for path in dict.fromkeys(members):
            files.append(InputFile(path, Path(str(number), os.path.relpath(path.absolute(), root)).as_posix()))
    return files


def pack(files: Sequence[InputFile], folder: Path) -> None:
    """Copy the files to their places in `folder`."""
    for file in files:
        target = folder / file.packed_path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file.path, target)
