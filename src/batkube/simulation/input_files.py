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

from batkube.scenarios.relocation import files_in_texts
from batkube.scenarios.scenario import Scenario
from batkube.workloads.named_files import files_named_by
from batkube.workloads.recipes import Recipe

#: Where a run's folder has its inputs.
PACK = "inputs"


class InputFile(NamedTuple):
    """A file that a run read."""

    path: Path
    #: Where it lies in a pack: `0/workload.json`.
    place: str


def files_of(scenario: Scenario) -> list[InputFile]:
    """Return the files that a run reads, in groups: one that its scenario names, then those that this one names.

    One that is not there is passed over: whoever reads it says so better.
    """
    commands = (scenario.scheduler, *scenario.more_schedulers, *scenario.attach, scenario.controllers or "")
    named = [*scenario.input_files, *files_in_texts([*commands, *scenario.scheduler_args.values()])]
    if scenario.events and not isinstance(scenario.events, Path):
        named += _files_in_events(scenario.events)
    groups: dict[Path, list[Path]] = {path: [] for path in named if path.is_file()}
    for source in scenario.workloads:
        owner = source.trace if isinstance(source, Recipe) else source
        if owner is not None and owner in groups:
            groups[owner] += files_named_by(owner)
    if isinstance(scenario.events, Path) and scenario.events in groups:
        groups[scenario.events] += _files_in_events(scenario.events)
    return _placed(groups)


def _files_in_events(events: Path | tuple[object, ...]) -> list[Path]:
    from batkube.workloads.happening_files import files_in, files_named

    return files_named(events) if isinstance(events, Path) else files_in(events)


def _placed(groups: dict[Path, list[Path]]) -> list[InputFile]:
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
        target = folder / file.place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file.path, target)
