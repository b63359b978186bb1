"""Repeat a run from its output folder, possibly moved or on another machine.

The manifest has the scenario and the hashes of all inputs. The inputs are located by hash (`outputs.files.search`), and
the scenario gets their current paths. The new outputs are compared with the hashes in the manifest. The result has the
first differing line of each file, and differences of versions, programs and inputs as possible causes.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.files.temporary import temporary_file_errors
from batkube.outputs.files.file_list import FileList
from batkube.outputs.files.input_search import InputSearch, RecordedInput
from batkube.outputs.files.manifest import MANIFEST, file_list_in, read_manifest
from batkube.policies.registry.catalogue import policy_names
from batkube.programs.program import Builder
from batkube.scenarios.keys import make_scenario
from batkube.scenarios.relocation import relocate
from batkube.scenarios.scenario import POLICY_PREFIX, Scenario, policy_file
from batkube.simulation.preparation.input_files import PACK_FOLDER
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
) -> RerunResult:
    """Repeat the run in `folder`, into `out` or a temporary folder, and compare the results.

    `inputs` are files and folders in which to look for inputs. Raises InputError if an input is missing.
    """
    manifest = _manifest(folder)
    if out is not None and out.resolve() == folder.resolve():
        problem = "is the run itself, with which the new one is compared"
        raise InputError(f"--out {out}", problem=problem, remedy="choose another --out")
    with contextlib.ExitStack() as stack:
        shelf = _temporary_folder(stack)
        scenario = _relocated_scenario(folder, manifest, _locate_inputs(folder, manifest, inputs, shelf), outputs)
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
        problem = "was edited, or is of an earlier version, so it is not known what was run"
        raise InputError(folder / MANIFEST, problem=problem, remedy="run its scenario anew, with `batkube run`")
    if not isinstance(manifest.get("scenario"), dict) or "digest" not in manifest:
        problem = "is of no simulated run, and only these can be repeated"
        raise InputError(folder / MANIFEST, problem=problem, remedy="give the output folder of `batkube run`")
    return manifest


def _locate_inputs(folder: Path, manifest: Mapping[str, Any], more: Sequence[Path], shelf: Path) -> dict[str, str]:
    """Return where the inputs are now by where they were. Raises InputError, naming all that are nowhere."""
    for place in more:
        if not place.exists():
            raise InputError(f"--inputs {place}", problem="there is no such file or folder", remedy="check the path")
    wanted = [_recorded_input(folder, entry) for entry in manifest.get("inputs") or ()]
    search = InputSearch(folder, PACK_FOLDER, more)
    places = {one: search.find(one) for one in wanted}
    missing = [f"{one.path} (sha256 {one.sha256})" for one, place in places.items() if place is None]
    if missing:
        raise InputError(
            folder,
            problem=f"cannot be run again without {' and '.join(missing)}, which {_searched_text(more)}",
            remedy="say with --inputs where it is, whatever its name; `batkube run --pack` keeps inputs with a run",
        )
    return _link_groups({one: place for one, place in places.items() if place is not None}, shelf)


def _searched_text(more: Sequence[Path]) -> str:
    beside = f", nor in {', '.join(map(str, more))}" if more else ""
    return f"is neither where it was, nor in the run's folder or beside it{beside}"


def _recorded_input(folder: Path, entry: Mapping[str, Any]) -> RecordedInput:
    try:
        return RecordedInput(entry["path"], entry["bytes"], entry["sha256"], entry["place"])
    except KeyError:
        problem = "is of an earlier version, which did not say where inputs belong"
        raise InputError(folder / MANIFEST, problem=problem, remedy="run its scenario anew") from None


def _link_groups(places: Mapping[RecordedInput, Path], shelf: Path) -> dict[str, str]:
    """Return the places of what the scenario names, the first of each group; the others lie to it as they did.

    Where that is not so, or names are others, links on the `shelf` do: readers go by names.
    """
    groups = itertools.groupby(places, key=lambda one: one.place.partition("/")[0])
    result: dict[str, str] = {}
    for number, members in ((number, list(group)) for number, group in groups):
        first, links = members[0], shelf / PACK_FOLDER
        result[first.path] = str(places[first])
        paths = [str(places[one].absolute()) for one in members]
        roots = [path.removesuffix(one.place.removeprefix(number)) for one, path in zip(members, paths, strict=True)]
        if len(dict.fromkeys(roots)) > 1 or roots[0] == paths[0]:  # apart, or under another name
            result[first.path] = str(links / first.place)
            for one in members:
                (links / one.place).parent.mkdir(parents=True, exist_ok=True)
                (links / one.place).symlink_to(places[one].absolute())
    return result


def _relocated_scenario(
    folder: Path, manifest: Mapping[str, Any], places: Mapping[str, str], outputs: str | None
) -> Scenario:
    values = relocate(manifest["scenario"], places)
    if outputs is not None:
        values["outputs"] = outputs
    scenario = make_scenario(values, folder / MANIFEST)
    name = scenario.scheduler.removeprefix(POLICY_PREFIX)
    known = [policy for policy, _ in policy_names()]
    if name != scenario.scheduler and policy_file(scenario.scheduler) is None and name not in known:
        problem = f"its policy {name} was an object in Python, and is in no file"
        raise InputError(folder / MANIFEST, problem=problem, remedy="run it from a file: policy:FILE:CLASS")
    return scenario


def _compare(folder: Path, before: Mapping[str, Any], target: Path, scenario: Scenario) -> RerunResult:
    now = read_manifest(target)
    then, new = file_list_in(before) or FileList({}), file_list_in(now) or FileList({})
    both = [name for name in then.files if name in new.files and not name.startswith(_NOT_COMPARED)]
    stamped = [name for name in both if then.files[name] is not None]
    altered = then.modified(folder)
    changed = [name for name in stamped if name in altered or then.files[name] != new.files[name]]
    return RerunResult(
        digests=(str(before["digest"]), str(now["digest"])),
        identical_files=[name for name in stamped if name not in changed],
        differences=[
            _first_difference(name, folder / name, target / name, is_altered=name in altered) for name in changed
        ],
        environment_changes=list(_environment_changes(before, now)),
        nondeterminism=_nondeterminism(scenario),
        failures=(before.get("failure"), now.get("failure")),
    )


def _first_difference(name: str, before: Path, now: Path, *, is_altered: bool) -> FileDifference:
    """Return the first line in which two files differ; none where the older one was removed, or is no plain file."""
    if before.is_symlink() or not before.is_file():
        return FileDifference(name, is_altered)
    with before.open(encoding="utf-8", errors="replace") as old, now.open(encoding="utf-8", errors="replace") as new:
        for number, (one, other) in enumerate(itertools.zip_longest(old, new, fillvalue=""), start=1):
            if one != other:
                return FileDifference(name, is_altered, number, *(_abbreviated(line) for line in (one, other)))
    return FileDifference(name, is_altered)


def _abbreviated(line: str) -> str:
    return line.rstrip()[:_MAX_LINE_LENGTH]


def _environment_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is not as it was around the run."""
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
        yield "the inputs that were read are not the same"
    old_programs, new_programs = (list(manifest.get("programs") or ()) for manifest in (before, now))
    nothing: dict[str, Any] = {}
    for one, other in itertools.zip_longest(old_programs, new_programs, fillvalue=nothing):
        if one.get("sha256") != other.get("sha256"):
            yield f"{one.get('name') or other.get('name')} was {_build_text(one)}, and is {_build_text(other)}"


def _manifest_value(manifest: Mapping[str, Any], keys: Sequence[str]) -> object:
    value: Any = manifest
    for key in keys:
        value = value.get(key, "unknown")
    return value


def _build_text(program: Mapping[str, Any]) -> str:
    if not program:
        return "not there"
    return f"{program.get('version') or 'a build'} with sha256 {str(program.get('sha256'))[:12]}…"


def _nondeterminism(scenario: Scenario) -> str:
    """Say why a scenario cannot be repeated to the byte, if it cannot."""
    if scenario.time.mode is not TimeMode.EXACT:
        return f"{scenario.time.mode} time follows the real one, so no two runs are the same"
    if scenario.is_outside and scenario.decision_cost == MEASURED:
        return "decisions cost what was measured, so no two runs are the same"
    if scenario.is_outside and not scenario.deterministic:
        return "it ran with --no-deterministic, so no two runs are the same"
    return ""
