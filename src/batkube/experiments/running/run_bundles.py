"""Parcels: a run that is done where there is none of our files, and what comes back of it.

A parcel names the files that its run reads; their content travels beside it, each only once for all runs. Where it is
unpacked, a folder stands for the root of our file system:

    FOLDER/data/study/w.json        the file that is /data/study/w.json here
    FOLDER/data/study               the current folder of the run, so that relative paths mean what they mean here
    FOLDER/data/study/out/runs/R    where the run writes

So whatever the run says of a file, in its manifest or in a message, is the path that the file has here once FOLDER is
taken from it: the files that come back are those that a run here would have written.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from batkube.experiments.plan.code_digest import code_digest
from batkube.experiments.running.runner import RunRequest, execute_request
from batkube.kernel.errors import InputError
from batkube.outputs.files.folder import OutputFolder
from batkube.outputs.files.manifest import MANIFEST, read_manifest, run_description_in
from batkube.scenarios.keys import make_scenario
from batkube.scenarios.relocation import relocate
from batkube.schedulers.build.records import DEFINITIONS
from batkube.schedulers.installed import cache_folder
from batkube.simulation.preparation.input_files import input_files_of

#: The files of a run, beside its manifest, that may name input files.
_FILES_WITH_PATHS = {"fidelity.json", "audit.jsonl", "bug.txt"}


@dataclass(frozen=True, slots=True)
class RunBundle:
    """A run and the files it reads."""

    request: RunRequest
    #: The mode of each file, by its absolute path here.
    files: Mapping[Path, int]
    #: The current folder of whoever sends it.
    working_directory: Path
    #: Which code of ours is to do the run.
    code_digest: str


@dataclass(frozen=True, slots=True)
class BundleResult:
    """What came of a run."""

    #: What went wrong, or None.
    failure: str | None
    #: What its manifest says of the run, as JSON; nothing if it left no folder.
    manifest: bytes = b""
    #: The content of the other files in its folder.
    files: Mapping[str, bytes] = field(default_factory=dict)


def bundle_of(order: RunRequest) -> RunBundle:
    """Return the parcel of a run. Raises InputError when a file that it needs cannot be read."""
    files = [*(file.path for file in input_files_of(order.scenario)), *_program_files(order)]
    absolute = dict.fromkeys(Path(os.path.abspath(file)) for file in files)
    try:
        modes = {file: stat.S_IMODE(file.stat().st_mode) for file in absolute}
    except OSError as error:
        raise InputError(
            error.filename, problem=f"cannot be read: {error.strerror}", remedy="check the path"
        ) from error
    return RunBundle(order, modes, Path.cwd(), code_digest())


def _program_files(order: RunRequest) -> Iterator[Path]:
    """Yield the programs that are shipped: those we built, and those that the scenario names by their path.

    Other programs, an interpreter for one, are what they are on the machine that does the run.
    """
    for name, path in order.programs.items():
        if path.is_relative_to(cache_folder()) or Path(name) == path:
            yield path
            if (path.parent / DEFINITIONS).is_file():
                yield path.parent / DEFINITIONS


def run_bundle(parcel: RunBundle, contents: Sequence[bytes], folder: Path) -> BundleResult:
    """Unpack a parcel into a new `folder`, do its run there, and return what came of it. The folder is removed.

    The process's current folder is changed: this is for a process that does nothing else.
    """
    root = Path(os.path.realpath(folder))
    try:
        _unpack(parcel, contents, root)
        os.chdir(_path_below(root, parcel.working_directory))

        order, places = parcel.request, {str(file): str(_path_below(root, file)) for file in parcel.files}
        moved = replace(
            order,
            scenario=make_scenario(relocate(order.scenario.describe(), places), MANIFEST),
            folder=_path_below(root, order.folder),
            programs={name: Path(places.get(str(path), path)) for name, path in order.programs.items()},
        )
        failure = execute_request(moved)
        return _collect_result(failure, moved.folder, root)
    finally:
        os.chdir("/")
        shutil.rmtree(root, ignore_errors=True)


def _path_below(root: Path, path: Path) -> Path:
    """Return where an absolute path is, below `root`."""
    return root / path.relative_to(path.anchor)


def _unpack(parcel: RunBundle, contents: Sequence[bytes], root: Path) -> None:
    for folder in (parcel.working_directory, parcel.request.folder.parent):
        _path_below(root, folder).mkdir(parents=True, exist_ok=True)
    for (file, mode), content in zip(parcel.files.items(), contents, strict=True):
        place = _path_below(root, file)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(mode)


def _collect_result(failure: str | None, folder: Path, root: Path) -> BundleResult:
    """Return what a run left in its folder; below `root` nothing has a name that was not ours."""
    told = None if failure is None else failure.replace(str(root), "")
    content = run_description_in(read_manifest(folder))
    if not content:
        return BundleResult(told)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    del files[MANIFEST]
    for name in files.keys() & _FILES_WITH_PATHS:
        files[name] = files[name].replace(os.fsencode(root), b"")
    return BundleResult(told, msgspec.json.encode(content).replace(os.fsencode(root), b""), files)


def unpack_result(delivery: BundleResult, folder: Path) -> None:
    """Write what came of a run into `folder`, which is complete or not there at all, as the run itself would have."""
    if not delivery.manifest:
        return
    output = OutputFolder(folder, force=True)
    with output.writing():
        if delivery.failure is not None:
            output.protect_completed_run()
        for name, content in delivery.files.items():
            top, _, rest = name.partition("/")
            place = output.file(top) / rest
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        output.seal(msgspec.json.decode(delivery.manifest))
