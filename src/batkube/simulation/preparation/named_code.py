"""Code that files name: a scenario, an experiment, a catalogue or a run folder can make a run execute any program.

The command line, the user's own files below the current folder, and the catalogue in the user's configuration folder
are trusted. Code that any other file names is listed, and needs a confirmation (docs/explanation/security.md).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.outputs.files.manifest import read_manifest
from batkube.scenarios.keys import KEYS, split_scheduler
from batkube.scenarios.scenario import BATSIM_PREFIX, CONTROLLER_MANAGER, POLICY_PREFIX, Scenario, policy_file
from batkube.schedulers.catalogue import CatalogueEntry, read_catalogue
from batkube.schedulers.clocks import split_clock

#: A program of the catalogue, without arguments, which could make it execute another one. Its version is a release: Go
#: also builds any commit that was ever pushed to a repository, for example in a stranger's pull request.
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*(@v?\d+\.\d+\.\d+(-(alpha|beta|rc)\.?\d+)?)?")
#: A scheduler that is given by its path is started by this entry of the catalogue.
_ENTRY_OF_PATHS = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class NamedCode:
    """Code that a run executes because a file names it."""

    #: The file that names it.
    source: Path
    #: The command line, or the policy as in the scenario.
    text: str
    #: The file of a policy.
    policy: Path | None = None

    @property
    def is_own(self) -> bool:
        """Whether the file that names it, or the file of the policy, is trusted."""
        return is_own(self.source) or (self.policy is not None and is_own(self.policy))

    def __str__(self) -> str:
        return f"{self.source} names {self.text}"


Confirmation = Callable[[Sequence[NamedCode]], None]
"""Returns if the code may be executed; raises InputError otherwise."""


def foreign_code(code: Sequence[NamedCode]) -> list[NamedCode]:
    """Return the code that untrusted files name."""
    return [one for one in code if not one.is_own]


def reject_foreign_code(code: Sequence[NamedCode]) -> None:
    """Raise InputError if an untrusted file names code."""
    if foreign := foreign_code(code):
        listing = "".join(f"\n    {one}" for one in foreign)
        problem = f"would execute code named in files from elsewhere:{listing}"
        raise InputError("--trust", problem=problem, remedy="read these files; if you trust them, add --trust")


def trust_all(code: Sequence[NamedCode]) -> None:
    """Accept all code."""


def is_own(path: Path) -> bool:
    """Return whether a file is trusted: it belongs to the user, below the current folder, and not in a run folder."""
    resolved = path.resolve()
    # A link in a run folder belongs to the run, wherever it leads.
    folders = {*Path(os.path.abspath(path)).parents, *resolved.parents}
    try:
        owner = resolved.stat().st_uid
    except OSError:
        return False
    return owner in (0, os.geteuid()) and resolved.is_relative_to(Path.cwd()) and not any(map(read_manifest, folders))


def code_of_scenario(scenario: Scenario, source: Path, keys: Collection[str] = KEYS) -> list[NamedCode]:
    """Return the code that a run executes because the file `source` sets `keys`, or because of its catalogue."""
    return [*_code_of_keys(scenario, source, keys), *_code_of_catalogue(scenario)]


def _code_of_keys(scenario: Scenario, source: Path, keys: Collection[str]) -> Iterator[NamedCode]:
    texts: list[str] = []
    if "scheduler" in keys or (
        scenario.has_external_scheduler and scenario.scheduler_args and "scheduler-args" in keys
    ):
        arguments = scenario.scheduler_args if scenario.has_external_scheduler else {}
        texts.append(" ".join([scenario.scheduler, *(f"--{name}={value}" for name, value in arguments.items())]))
    texts += scenario.more_schedulers if "scheduler" in keys else ()
    texts += scenario.attach if "attach" in keys else ()
    texts += [scenario.controller_manager] if "controllers" in keys and scenario.controller_manager else []
    for text in texts:
        if _is_code(text):
            yield NamedCode(source, text, policy_file(text))


def _is_code(text: str) -> bool:
    """Return whether a text names more than a built-in policy, a program of the catalogue or an endpoint."""
    if text.startswith(POLICY_PREFIX):
        return policy_file(text) is not None
    if text.startswith(BATSIM_PREFIX):
        from batkube.batsim.schedulers.connection import is_endpoint

        return not is_endpoint(text.removeprefix(BATSIM_PREFIX))
    return _NAME.fullmatch(split_scheduler(text)[1]) is None


def _first_word(command: str) -> str:
    """Return the program of a command line, split as by the shell; "" if it cannot be split."""
    try:
        return (shlex.split(command) or [""])[0]
    except ValueError:
        return ""


def _entries_used(scenario: Scenario) -> Iterator[str]:
    """Yield the names of the catalogue entries used by a scenario, without their companions."""
    if not scenario.has_external_scheduler:
        return
    for text in (scenario.scheduler, *scenario.more_schedulers):
        kind, command = split_clock(split_scheduler(text)[1])
        if kind is None:
            yield _ENTRY_OF_PATHS if "/" in _first_word(command) else _first_word(command)
    if scenario.controller_manager:
        yield CONTROLLER_MANAGER
    yield from map(_first_word, scenario.attach)


def _code_of_catalogue(scenario: Scenario) -> Iterator[NamedCode]:
    """Yield the programs of the scenario's own catalogue that it uses, and their companions."""
    if scenario.catalogue is None:
        return
    entries = read_catalogue([scenario.catalogue])
    defaults = read_catalogue()
    names = [text.partition("@")[0] for text in _entries_used(scenario)]
    for name in names:  # grows by companions
        entry = entries.get(name)
        if entry is not None:
            companions = (_first_word(text).partition("@")[0] for text in entry.companions)
            names += [companion for companion in companions if companion not in names]
            if entry is not defaults.get(name):
                yield NamedCode(scenario.catalogue, f"{name}: {_origin(entry)}")


def _origin(entry: CatalogueEntry) -> str:
    if entry.command:
        return shlex.join(entry.command)
    return f"built from {entry.module or entry.folder}"
