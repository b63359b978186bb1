"""Bundles: a run with its files, for execution on a machine without our files, and the results that it returns.

A bundle lists the files that its run reads; their contents are sent separately, once for all runs. On the executing
machine, a folder stands for the root of our file system:

    FOLDER/data/study/w.json        the file that is /data/study/w.json here
    FOLDER/data/study               the current folder of the run, so that relative paths have the same meaning
    FOLDER/data/study/out/runs/R    the output folder of the run

Paths in the manifest and in messages are the paths here with FOLDER as prefix. The prefix is removed from the results,
so the returned files are the same as those of a local run.
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
    #: The current folder of the sender.
    working_directory: Path
    #: Digest of the code that has to execute the run.
    code_digest: str


@dataclass(frozen=True, slots=True)
class BundleResult:
    """The result of a run."""

    #: The failure message, or None.
    failure: str | None
    #: Its manifest without the list of files, as JSON; empty if it left no folder.
    manifest: bytes = b""
    #: The content of the other files in its folder.
    files: Mapping[str, bytes] = field(default_factory=dict)


def bundle_of(request: RunRequest) -> RunBundle:
    """Return the bundle of a run. Raises InputError if one of its files cannot be read."""
    files = [*(file.path for file in input_files_of(request.scenario)), *_program_files(request)]
    absolute = dict.fromkeys(Path(os.path.abspath(file)) for file in files)
    try:
        modes = {file: stat.S_IMODE(file.stat().st_mode) for file in absolute}
    except OSError as error:
        raise InputError(
            error.filename, problem=f"cannot be read: {error.strerror}", remedy="check the path"
        ) from error
    return RunBundle(request, modes, Path.cwd(), code_digest())


def _program_files(request: RunRequest) -> Iterator[Path]:
    """Yield the programs to send: those we built, and those that the scenario names by their path.

    Other programs, such as an interpreter, must be installed on the machine that executes the run.
    """
    for name, path in request.programs.items():
        if path.is_relative_to(cache_folder()) or Path(name) == path:
            yield path
            if (path.parent / DEFINITIONS).is_file():
                yield path.parent / DEFINITIONS


def run_bundle(bundle: RunBundle, contents: Sequence[bytes], folder: Path) -> BundleResult:
    """Unpack a bundle into a new `folder`, execute its run there, remove the folder, and return the result.

    This changes the current folder of the process, which must do nothing else meanwhile.
    """
    root = Path(os.path.realpath(folder))
    try:
        _unpack(bundle, contents, root)
        os.chdir(_path_below(root, bundle.working_directory))

        request, new_paths = bundle.request, {str(file): str(_path_below(root, file)) for file in bundle.files}
        relocated = replace(
            request,
            scenario=make_scenario(relocate(request.scenario.describe(), new_paths), MANIFEST),
            folder=_path_below(root, request.folder),
            programs={name: Path(new_paths.get(str(path), path)) for name, path in request.programs.items()},
        )
        failure = execute_request(relocated)
        return _collect_result(failure, relocated.folder, root)
    finally:
        os.chdir("/")
        shutil.rmtree(root, ignore_errors=True)


def _path_below(root: Path, path: Path) -> Path:
    """Return the path below `root` that stands for an absolute path."""
    return root / path.relative_to(path.anchor)


def _unpack(bundle: RunBundle, contents: Sequence[bytes], root: Path) -> None:
    for folder in (bundle.working_directory, bundle.request.folder.parent):
        _path_below(root, folder).mkdir(parents=True, exist_ok=True)
    for (file, mode), content in zip(bundle.files.items(), contents, strict=True):
        path = _path_below(root, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)


def _collect_result(failure: str | None, folder: Path, root: Path) -> BundleResult:
    """Return the result in a run's folder, with `root` removed from all paths."""
    message = None if failure is None else failure.replace(str(root), "")
    content = run_description_in(read_manifest(folder))
    if not content:
        return BundleResult(message)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    del files[MANIFEST]
    for name in files.keys() & _FILES_WITH_PATHS:
        files[name] = files[name].replace(os.fsencode(root), b"")
    return BundleResult(message, msgspec.json.encode(content).replace(os.fsencode(root), b""), files)


def unpack_result(result: BundleResult, folder: Path) -> None:
    """Write the result of a run into `folder`, completely or not at all, as the run itself would have done."""
    if not result.manifest:
        return
    output = OutputFolder(folder, force=True)
    with output.writing():
        if result.failure is not None:
            output.protect_completed_run()
        for name, content in result.files.items():
            top, _, rest = name.partition("/")
            path = output.file(top) / rest
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        output.seal(msgspec.json.decode(result.manifest))
