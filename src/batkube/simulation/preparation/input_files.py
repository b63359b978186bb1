"""The input files of a run: those in its scenario, and those to which these refer.

Each has a path in a *pack*, the folder `inputs` of a run. There is a numbered folder per file in the scenario. The
files to which it refers are in the same folder, with unchanged relative paths, so that a workload finds its traces.
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

#: The folder with the inputs in a run's folder.
PACK_FOLDER = "inputs"


class InputFile(NamedTuple):
    """An input file of a run."""

    path: Path
    #: Its path in a pack, such as `0/workload.json`.
    packed_path: str


def input_files_of(scenario: Scenario) -> list[InputFile]:
    """Return the input files in groups: a file in the scenario, followed by the files to which it refers.

    Files that do not exist are skipped: their readers report a better error.
    """
    commands = (scenario.scheduler, *scenario.more_schedulers, *scenario.attach, scenario.controllers or "")
    arguments = files_in_command_lines([*commands, *scenario.scheduler_args.values()])
    return _assign_packed_paths(_groups(scenario, arguments))


def data_files_of(scenario: Scenario) -> list[Path]:
    """Return the files that the run itself reads, without those that are only named in command lines."""
    groups = _groups(scenario, [])
    return [path for owner, others in groups.items() for path in (owner, *others)]


def _groups(scenario: Scenario, arguments: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return the files of the scenario, and those in `arguments`, each with the files to which it refers."""
    named = [*scenario.input_files, *arguments]
    if scenario.events and not isinstance(scenario.events, Path):
        named += _files_in_events(scenario.events)
    groups: dict[Path, list[Path]] = {path: [] for path in named if path.is_file()}
    for source in scenario.workloads:
        owner = source.trace if isinstance(source, WorkloadRecipe) else source
        if owner is not None and owner in groups:
            groups[owner] += companion_files(owner)
    if isinstance(scenario.events, Path) and scenario.events in groups:
        groups[scenario.events] += _files_in_events(scenario.events)
    return groups


def _files_in_events(events: Path | tuple[object, ...]) -> list[Path]:
    from batkube.workloads.timeline.reader import files_in_entries, files_in_events_file

    return files_in_events_file(events) if isinstance(events, Path) else files_in_entries(events)


def _assign_packed_paths(groups: dict[Path, list[Path]]) -> list[InputFile]:
    files: list[InputFile] = []
    for number, (owner, others) in enumerate(groups.items()):
        members = [owner, *others]
        # Without `..`, so that no path leads out of the pack, whatever a stranger's workload refers to.
        places = {path: os.path.abspath(path) for path in members}
        root = os.path.commonpath([os.path.dirname(place) for place in places.values()])
        for path, place in places.items():
            files.append(InputFile(path, Path(str(number), os.path.relpath(place, root)).as_posix()))
    return files


def pack(files: Sequence[InputFile], folder: Path) -> None:
    """Copy the files to their paths in `folder`."""
    for file in files:
        target = folder / file.packed_path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file.path, target)
