"""Write a workload to a file, atomically."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from msgspec.structs import replace as replace_fields

from batkube.files.replacement import replace_on_success
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.workloads.formats.batsim.writer import batsim_text
from batkube.workloads.formats.kubernetes.manifest_writer import is_object_name, manifests_text
from batkube.workloads.formats.traces.swf_writer import has_fractional_seconds, swf_text
from batkube.workloads.history import Step
from batkube.workloads.model import WHOLE_GANG, Job, Workload
from batkube.workloads.reader import format_of_name

_WRITERS: dict[str, Callable[[Workload], Iterator[str]]] = {
    "batsim": batsim_text,
    "swf": swf_text,
    "manifests": manifests_text,
}
WRITABLE_FORMATS = tuple(_WRITERS)
_FORMATS_TEXT = "batsim (.json), swf (.swf), manifests (.yaml, .yml); each may be gzipped (.gz)"

#: For each format, the losses of a conversion, and whether a job is affected.
_LOSS_CHECKS: dict[str, tuple[tuple[FidelityNote, Callable[[Job], bool]], ...]] = {
    "batsim": (),
    "swf": (
        (
            FidelityNote("workload", "SWF cannot express requests per pod: a job's are lost"),
            lambda job: bool(job.requests),
        ),
        (FidelityNote("workload", "SWF cannot express priorities: a job's is lost"), lambda job: job.priority != 0),
        (FidelityNote("workload", "SWF cannot express schedulers: a job's is lost"), lambda job: bool(job.scheduler)),
        (
            FidelityNote("workload", "SWF times are whole seconds: a job's have decimals, which some readers reject"),
            has_fractional_seconds,
        ),
        (FidelityNote("workload", "SWF cannot express exit codes: a job's is lost"), lambda job: job.profile.ret != 0),
        (FidelityNote("workload", "SWF cannot express PodGroups: a job's is lost"), lambda job: job.gang != WHOLE_GANG),
    ),
    "manifests": (
        (
            FidelityNote("workload", "manifests cannot express min_member and min_resources: a job's are lost"),
            lambda job: job.gang != WHOLE_GANG,
        ),
        (
            FidelityNote("workload", "a job's name is not a valid Kubernetes object name and was changed"),
            lambda job: not is_object_name(job.name),
        ),
        (FidelityNote("workload", "manifests cannot express queues: a job's is lost"), lambda job: bool(job.queue)),
        (
            FidelityNote("workload", "manifests cannot express partitions: a job's is lost"),
            lambda job: bool(job.partition),
        ),
    ),
}


def write_workload(
    workload: Workload, path: Path, format: str | None = None, *, force: bool = False, step: Step | None = None
) -> list[tuple[FidelityNote, int]]:
    """Write `workload` to `path`, and return notes on what the format cannot express, with the number of jobs.

    `step` describes the command that made it, for the file's history; the notes are added to it.
    The format is one of `WRITABLE_FORMATS`; by default, the extension determines it. An existing file is only replaced
    with `force`, and atomically: after an error, the old file is unchanged.
    """
    selected = format or format_of_name(path)
    if selected not in _WRITERS:
        raise InputError(path, problem="has no extension of a writable format", remedy=f"formats: {_FORMATS_TEXT}")
    if path.is_dir():
        raise InputError(path, problem="is a directory", remedy="name a file in it")
    if path.exists() and not force:
        raise InputError(path, problem="already exists", remedy="choose another name, or replace it with --force")
    if not path.parent.is_dir():
        raise InputError(path, problem=f"the folder {path.parent} does not exist", remedy="create it first")
    counted = [(note, sum(map(is_affected, workload.jobs))) for note, is_affected in _LOSS_CHECKS[selected]]
    losses = [(note, count) for note, count in counted if count]
    if step is not None:
        notes = {note.message: count for note, count in (*workload.notes, *losses)}
        workload = dataclasses.replace(workload, header=workload.header.with_step(replace_fields(step, notes=notes)))
    _write_atomically(path, _WRITERS[selected](workload))
    return losses


def _write_atomically(path: Path, chunks: Iterable[str]) -> None:
    try:
        with replace_on_success(path) as partial, partial.open("wb") as raw:
            if path.suffix.lower() == ".gz":
                # Without name and time in the header, the same workload gives the same bytes.
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped:
                    _write_chunks(cast(BinaryIO, zipped), chunks)
            else:
                _write_chunks(raw, chunks)
    except OSError as error:
        remedy = f"check the permissions and the free space of {path.parent}"
        raise InputError(path, problem=f"cannot be written: {error.strerror}", remedy=remedy) from None


def _write_chunks(stream: BinaryIO, chunks: Iterable[str]) -> None:
    for chunk in chunks:
        stream.write(chunk.encode())
