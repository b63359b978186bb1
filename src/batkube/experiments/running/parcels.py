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

from batkube.experiments.plan.own_code import own_code
from batkube.experiments.running.performing import Order, perform
from batkube.kernel.errors import InputError
from batkube.outputs.files.folder import OutputFolder
from batkube.outputs.files.manifest import MANIFEST, content_of, read_manifest
from batkube.scenarios.keys import make_scenario
from batkube.scenarios.relocation import relocated
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.records import DEFINITIONS
from batkube.simulation.input_files import files_of

#: The files of a run, beside its manifest, that may name input files.
_WITH_PATHS = {"fidelity.json", "audit.jsonl", "bug.txt"}


@dataclass(frozen=True, slots=True)
class Parcel:
    """A run and the files it reads."""

    order: Order
    #: The mode of each file, by its absolute path here.
    files: Mapping[Path, int]
    #: The current folder of whoever sends it.
    current: Path
    #: Which code of ours is to do the run.
    code: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """What came of a run."""

    #: What went wrong, or None.
    failure: str | None
    #: What its manifest says of the run, as JSON; nothing if it left no folder.
    manifest: bytes = b""
    #: The content of the other files in its folder.
    files: Mapping[str, bytes] = field(default_factory=dict)


def parcel_of(order: Order) -> Parcel:
    """Return the parcel of a run. Raises InputError when a file that it needs cannot be read."""
    files = [*(file.path for file in files_of(order.scenario)), *_program_files(order)]
    absolute = dict.fromkeys(Path(os.path.abspath(file)) for file in files)
    try:
        modes = {file: stat.S_IMODE(file.stat().st_mode) for file in absolute}
    except OSError as error:
        raise InputError(
            error.filename, problem=f"cannot be read: {error.strerror}", remedy="check the path"
        ) from error
    return Parcel(order, modes, Path.cwd(), own_code())


def _program_files(order: Order) -> Iterator[Path]:
    """Yield the programs that are shipped: those we built, and those that the scenario names by their path.

    Other programs, an interpreter for one, are what they are on the machine that does the run.
    """
    for name, path in order.programs.items():
        if path.is_relative_to(cache_folder()) or Path(name) == path:
            yield path
            if (path.parent / DEFINITIONS).is_file():
                yield path.parent / DEFINITIONS


def perform_parcel(parcel: Parcel, contents: Sequence[bytes], folder: Path) -> Delivery:
    """Unpack a parcel into a new `folder`, do its run there, and return what came of it. The folder is removed.

    The process's current folder is changed: this is for a process that does nothing else.
    """
    root = Path(os.path.realpath(folder))
    try:
        _unpack(parcel, contents, root)
        os.chdir(_within(root, parcel.current))

        order, places = parcel.order, {str(file): str(_within(root, file)) for file in parcel.files}
        moved = replace(
            order,
            scenario=make_scenario(relocated(order.scenario.describe(), places), MANIFEST),
            folder=_within(root, order.folder),
            programs={name: Path(places.get(str(path), path)) for name, path in order.programs.items()},
        )
        failure = perform(moved)
        return _delivery(failure, moved.folder, root)
    finally:
        os.chdir("/")
        shutil.rmtree(root, ignore_errors=True)


def _within(root: Path, path: Path) -> Path:
    """Return where an absolute path is, below `root`."""
    return root / path.relative_to(path.anchor)


def _unpack(parcel: Parcel, contents: Sequence[bytes], root: Path) -> None:
    for folder in (parcel.current, parcel.order.folder.parent):
        _within(root, folder).mkdir(parents=True, exist_ok=True)
    for (file, mode), content in zip(parcel.files.items(), contents, strict=True):
        place = _within(root, file)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(mode)


def _delivery(failure: str | None, folder: Path, root: Path) -> Delivery:
    """Return what a run left in its folder; below `root` nothing has a name that was not ours."""
    told = None if failure is None else failure.replace(str(root), "")
    content = content_of(read_manifest(folder))
    if not content:
        return Delivery(told)
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    del files[MANIFEST]
    for name in files.keys() & _WITH_PATHS:
        files[name] = files[name].replace(os.fsencode(root), b"")
    return Delivery(told, msgspec.json.encode(content).replace(os.fsencode(root), b""), files)


def put(delivery: Delivery, folder: Path) -> None:
    """Write what came of a run into `folder`, which is complete or not there at all, as the run itself would have."""
    if not delivery.manifest:
        return
    output = OutputFolder(folder, force=True)
    with output.writing():
        if delivery.failure is not None:
            output.keep_completed_run()
        for name, content in delivery.files.items():
            top, _, rest = name.partition("/")
            place = output.file(top) / rest
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        output.seal(msgspec.json.decode(delivery.manifest))
