"""Repeat a run from its output folder, possibly moved or on another machine.

The manifest has the scenario and the hashes of all inputs. The inputs are located by hash (`outputs.files.search`), and
the scenario gets their current paths. The new outputs are compared with the hashes in the manifest. The result has the
first differing line of each file, and differences of versions, programs and inputs as possible causes.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batkube.files.temporary import temporary_file_errors
from batkube.kernel.errors import InputError, RunFailed
from batkube.outputs.files.confinement import is_confined, is_relative
from batkube.outputs.files.file_list import FileList
from batkube.outputs.files.input_search import InputSearch, RecordedInput
from batkube.outputs.files.manifest import MANIFEST, file_list_in, read_manifest
from batkube.policies.registry.catalogue import policy_names
from batkube.programs.program import Builder
from batkube.scenarios.keys import make_scenario
from batkube.scenarios.relocation import relocate
from batkube.scenarios.scenario import POLICY_PREFIX, Scenario, policy_file
from batkube.simulation.preparation.input_files import PACK_FOLDER, data_files_of
from batkube.simulation.preparation.named_code import Confirmation, code_of_scenario, reject_foreign_code
from batkube.simulation.progress import ProgressListener
from batkube.simulation.run import execute
from batkube.timing.costs import MEASURED
from batkube.timing.time_rules import TimeMode

#: Folders that are not compared: their files depend on ports, secrets and processes, or are not results.
_NOT_COMPARED = ("scheduler/", "engine/", f"{PACK_FOLDER}/")
#: Longer lines are cut.
_MAX_LINE_LENGTH = 160


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A file that differs from the original run; the lines are empty if they are unknown."""

    name: str
    #: Whether the original file was modified after the run, so that it proves no difference of the runs.
    is_altered: bool = False
    line: int = 0
    before: str = ""
    now: str = ""


@dataclass(frozen=True, slots=True)
class RerunResult:
    """The result of repeating a run."""

    digests: tuple[str, str]
    #: Files that are identical, and those that differ.
    identical_files: Sequence[str]
    differences: Sequence[FileDifference]
    #: Differences of versions, programs and inputs, as text.
    environment_changes: Sequence[str]
    #: Why runs of this scenario are not repeatable; empty if they are.
    nondeterminism: str
    #: The failure of each run, or None.
    failures: tuple[str | None, str | None] = field(default=(None, None))

    @property
    def is_identical(self) -> bool:
        """Whether digests, files and failures are equal."""
        return self.digests[0] == self.digests[1] and not self.differences and self.failures[0] == self.failures[1]


def rerun(
    folder: Path,
    out: Path | None = None,
    *,
    inputs: Sequence[Path] = (),
    outputs: str | None = None,
    force: bool = False,
    pack: bool = False,
    command: Sequence[str] = (),
    progress: ProgressListener | None = None,
    builder: Builder | None = None,
    confirm: Confirmation = reject_foreign_code,
) -> RerunResult:
    """Repeat the run in `folder`, into `out` or a temporary folder, and compare the results.

    `inputs` are files and folders in which to look for inputs; `confirm` gets the code that the run would execute.
    Raises InputError if an input is missing.
    """
    manifest = _manifest(folder)
    if out is not None and out.resolve() == folder.resolve():
        problem = "is the run itself, with which the new one is compared"
        raise InputError(f"--out {out}", problem=problem, remedy="choose another --out")
    with contextlib.ExitStack() as stack:
        shelf = _temporary_folder(stack)
        located = _locate_inputs(folder, manifest, inputs)
        scenario = _relocated_scenario(folder, manifest, _link_groups(located, shelf), outputs)
        _check_inputs_are_recorded(folder, scenario, located.values())
        confirm(code_of_scenario(scenario, folder / MANIFEST))
        target = shelf / "run" if out is None else out
        with contextlib.suppress(RunFailed):  # the original may have failed as well; the manifests are compared
            execute(scenario, target, force=force, pack=pack, command=command, progress=progress, builder=builder)
        return _compare(folder, manifest, target, scenario)


def _temporary_folder(stack: contextlib.ExitStack) -> Path:
    with temporary_file_errors():
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="batkube-")))


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a repeatable run. Raises InputError."""
    if not folder.is_dir():
        raise InputError(folder, problem="no such folder", remedy="use the output folder of `batkube run`")
    manifest = read_manifest(folder)
    if not manifest:
        problem = f"is not the output folder of a run: it has no {MANIFEST} of Batkube"
        raise InputError(folder, problem=problem, remedy="use the output folder of `batkube run`")
    if file_list_in(manifest) is None:
        problem = "was edited, or is of an earlier version, so the original run is unknown"
        raise InputError(folder / MANIFEST, problem=problem, remedy="run its scenario again, with `batkube run`")
    if not isinstance(manifest.get("scenario"), dict) or "digest" not in manifest:
        problem = "is not of a simulated run; only these can be repeated"
        raise InputError(folder / MANIFEST, problem=problem, remedy="use the output folder of `batkube run`")
    for key in ("inputs", "programs"):
        entries = manifest.get(key) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise InputError(
                folder / MANIFEST, at=key, problem="is not a list of mappings", remedy="run its scenario again"
            )
    return manifest


def _locate_inputs(folder: Path, manifest: Mapping[str, Any], more: Sequence[Path]) -> dict[RecordedInput, Path]:
    """Return the current path of each input. Raises InputError that names all missing inputs."""
    for place in more:
        if not place.exists():
            raise InputError(f"--inputs {place}", problem="there is no such file or folder", remedy="check the path")
    recorded = [_recorded_input(folder, entry) for entry in manifest.get("inputs") or ()]
    search = InputSearch(folder, PACK_FOLDER, more)
    places = {one: search.find(one) for one in recorded}
    missing = [f"{one.path} (sha256 {one.sha256})" for one, place in places.items() if place is None]
    if missing:
        raise InputError(
            folder,
            problem=f"cannot be repeated without {' and '.join(missing)}, which {_searched_text(more)}",
            remedy="pass its current path with --inputs; `batkube run --pack` copies inputs into the output folder",
        )
    return {one: place for one, place in places.items() if place is not None}


def _check_inputs_are_recorded(folder: Path, scenario: Scenario, located: Collection[Path]) -> None:
    """Raise InputError if the scenario reads a file that the manifest does not list with its hash."""
    recorded = {path.resolve() for path in located}
    for path in data_files_of(scenario):
        if path.resolve() not in recorded:
            problem = f"reads {path}, which is not one of its inputs"
            remedy = "do not trust this folder: Batkube lists all inputs"
            raise InputError(folder / MANIFEST, at="scenario", problem=problem, remedy=remedy)


def _searched_text(more: Sequence[Path]) -> str:
    beside = f", nor in {', '.join(map(str, more))}" if more else ""
    return f"is neither at its path, nor in the run's folder or beside it{beside}"


def _recorded_input(folder: Path, entry: object) -> RecordedInput:
    match entry:
        case {"path": str(path), "bytes": int(size), "sha256": str(sha256), "place": str(place)}:
            if is_relative(place):
                return RecordedInput(path, size, sha256, place)
            problem = f"the place {place!r} of an input is not inside the folder of the run"
            remedy = "do not trust this folder: it was not written by Batkube"
        case _:
            problem, remedy = "does not say where its inputs belong", "run its scenario again"
    raise InputError(folder / MANIFEST, at="inputs", problem=problem, remedy=remedy)


def _link_groups(places: Mapping[RecordedInput, Path], shelf: Path) -> dict[str, str]:
    """Return the current path of the first file of each group, by its recorded path.

    Readers find the other files of a group by name, relative to the first one. If the files were moved apart or
    renamed, links in the folder `shelf` have the recorded names.
    """
    groups = itertools.groupby(places, key=lambda one: one.place.partition("/")[0])
    result: dict[str, str] = {}
    for number, members in ((number, list(group)) for number, group in groups):
        first, links = members[0], shelf / PACK_FOLDER
        result[first.path] = str(places[first])
        paths = [str(places[one].absolute()) for one in members]
        roots = [path.removesuffix(one.place.removeprefix(number)) for one, path in zip(members, paths, strict=True)]
        if len(dict.fromkeys(roots)) > 1 or roots[0] == paths[0]:  # moved apart, or renamed
            result[first.path] = str(links / first.place)
            for one in members:
                _link(links, one.place, places[one].absolute())
    return result


def _link(folder: Path, place: str, target: Path) -> None:
    """Make a link at `place` in `folder`. Raises InputError for places that exclude each other."""
    link = folder / place
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    except (FileExistsError, NotADirectoryError):
        problem = f"two inputs cannot both be at {place!r}"
        raise InputError(MANIFEST, at="inputs", problem=problem, remedy="run its scenario again") from None


def _relocated_scenario(
    folder: Path, manifest: Mapping[str, Any], places: Mapping[str, str], outputs: str | None
) -> Scenario:
    values = relocate(manifest["scenario"], places)
    if outputs is not None:
        values["outputs"] = outputs
    scenario = make_scenario(values, folder / MANIFEST)
    name = scenario.scheduler.removeprefix(POLICY_PREFIX)
    built_in = [policy for policy, _ in policy_names()]
    if name != scenario.scheduler and policy_file(scenario.scheduler) is None and name not in built_in:
        problem = f"its policy {name} was a Python object, which is not in a file"
        raise InputError(folder / MANIFEST, problem=problem, remedy="run it from a file: policy:FILE:CLASS")
    return scenario


def _compare(folder: Path, before: Mapping[str, Any], target: Path, scenario: Scenario) -> RerunResult:
    now = read_manifest(target)
    old, new = file_list_in(before) or FileList({}), file_list_in(now) or FileList({})
    both = [name for name in old.files if name in new.files and not name.startswith(_NOT_COMPARED)]
    hashed = [name for name in both if old.files[name] is not None]
    altered = old.modified(folder)
    changed = [name for name in hashed if name in altered or old.files[name] != new.files[name]]
    return RerunResult(
        digests=(str(before["digest"]), str(now["digest"])),
        identical_files=[name for name in hashed if name not in changed],
        differences=[_first_difference(name, folder, target, is_altered=name in altered) for name in changed],
        environment_changes=list(_environment_changes(before, now)),
        nondeterminism=_nondeterminism(scenario),
        failures=(before.get("failure"), now.get("failure")),
    )


def _first_difference(name: str, folder: Path, target: Path, *, is_altered: bool) -> FileDifference:
    """Return the first line in which two files differ; none if the older file is missing or outside of its folder."""
    before, now = folder / name, target / name
    if before.is_symlink() or not before.is_file() or not is_confined(folder, name):
        return FileDifference(name, is_altered)
    with before.open(encoding="utf-8", errors="replace") as old, now.open(encoding="utf-8", errors="replace") as new:
        for number, (one, other) in enumerate(itertools.zip_longest(old, new, fillvalue=""), start=1):
            if one != other:
                return FileDifference(name, is_altered, number, *(_abbreviated(line) for line in (one, other)))
    return FileDifference(name, is_altered)


def _abbreviated(line: str) -> str:
    return line.rstrip()[:_MAX_LINE_LENGTH]


def _environment_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield the changes of versions, system, inputs and programs since the original run."""
    for words, keys in (
        ("Batkube", ("batkube",)),
        ("Python", ("real", "python")),
        ("the system", ("real", "system")),
    ):
        old, new = _manifest_value(before, keys), _manifest_value(now, keys)
        if old != new:
            yield f"{words} was {old}, and is {new}"
    old_inputs, new_inputs = ([one["sha256"] for one in manifest.get("inputs") or ()] for manifest in (before, now))
    if old_inputs != new_inputs:
        yield "the inputs are not the same"
    old_programs, new_programs = (list(manifest.get("programs") or ()) for manifest in (before, now))
    nothing: dict[str, Any] = {}
    for one, other in itertools.zip_longest(old_programs, new_programs, fillvalue=nothing):
        if one.get("sha256") != other.get("sha256"):
            yield f"{one.get('name') or other.get('name')} was {_build_text(one)}, and is {_build_text(other)}"


def _manifest_value(manifest: Mapping[str, Any], keys: Sequence[str]) -> object:
    value: Any = manifest
    for key in keys:
        value = value.get(key, "unknown") if isinstance(value, Mapping) else "unknown"
    return value


def _build_text(program: Mapping[str, Any]) -> str:
    if not program:
        return "not there"
    return f"{program.get('version') or 'a build'} with sha256 {str(program.get('sha256'))[:12]}…"


def _nondeterminism(scenario: Scenario) -> str:
    """Return why repetitions of a scenario are not byte-identical; "" if they are."""
    if scenario.time.mode is not TimeMode.EXACT:
        return f"{scenario.time.mode} time follows the real time, so runs differ"
    if scenario.has_external_scheduler and scenario.decision_cost == MEASURED:
        return "decisions took their measured time, which differs in every run"
    if scenario.has_external_scheduler and not scenario.deterministic:
        return "it ran with --no-deterministic, so every run differs"
    return ""
