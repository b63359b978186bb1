"""Reading a workload, whatever its format: the one door for the rest of Batkube."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import cast

from batkube.kernel.errors import InputError
from batkube.workloads.files import open_input, open_lines
from batkube.workloads.formats.traces.sacct_rows import REMEDY, delimiter_of
from batkube.workloads.model import Workload

#: The module and the function that read each format. Only that of a run's workload is imported: the others would take
#: memory for nothing.
_READERS = {
    "batsim": ("formats.batsim.documents", "read_batsim"),
    "swf": ("formats.traces.swf", "read_swf"),
    "manifests": ("formats.kubernetes.manifests", "read_manifests"),
    "openb": ("formats.traces.openb", "read_openb"),
    "sacct": ("formats.traces.sacct", "read_sacct"),
    "pods": ("formats.kubernetes.pod_lists", "read_pod_list"),
    "audit": ("formats.kubernetes.audit_logs", "read_audit_log"),
    "alibaba": ("formats.traces.alibaba", "read_alibaba"),
    "google": ("formats.traces.google", "read_google"),
}
FORMATS = tuple(_READERS)
_FORMAT_OF_SUFFIX = {".json": "batsim", ".swf": "swf", ".yaml": "manifests", ".yml": "manifests", ".csv": "openb"}
_FORMATS_TEXT = (
    "batsim (.json), swf (.swf), manifests (.yaml, .yml), openb (.csv), sacct, pods (kubectl get pods -o json), "
    "audit (kube-apiserver's log), alibaba (batch_task, batch_instance), google (task_events, instance_events); "
    "each may be gzipped (.gz)"
)
#: In every line of kube-apiserver's log.
_AUDIT_GROUP = "audit.k8s.io"
#: So many characters at the beginning of a file tell what it is of those formats that have no extension of their own.
_HEAD_BYTES = 4096


def read_workload(
    path: Path,
    name: str = "w0",
    format: str | None = None,
    *,
    with_objects: bool = False,
    statuses: Collection[str] = (),
) -> Workload:
    """Return the workload at `path`, its jobs in the order of their submission.

    The format is told by the file's extension unless `format` names one of `FORMATS`. `name` becomes the first part of
    every job's identity. Manifests that no job can express are objects, if the caller can do anything `with_objects`.
    Of an SWF trace only jobs of certain `statuses` may be wanted.
    Raises InputError for whatever cannot be read.
    """
    if not name or "!" in name:
        raise InputError(path, problem=f"cannot be called {name!r}", remedy="a workload's name has no '!'")
    chosen = format or _detect_format(path)
    if chosen not in _READERS:
        raise InputError(path, problem=f"there is no workload format {chosen!r}", remedy=f"formats: {_FORMATS_TEXT}")
    reader = _reader(chosen)
    if statuses:
        if chosen != "swf":
            problem = "only traces in the Standard Workload Format tell how jobs ended"
            raise InputError(path, problem=problem, remedy="leave out --status")
        return reader(path, name, statuses)
    return reader(path, name, with_objects=True) if with_objects and chosen == "manifests" else reader(path, name)


def _reader(format: str) -> Callable[..., Workload]:
    module, function = _READERS[format]
    return cast(Callable[..., Workload], getattr(importlib.import_module(f"batkube.workloads.{module}"), function))


def format_of_name(path: Path) -> str | None:
    """Return the format that the name of `path` stands for; None when it stands for none."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return _FORMAT_OF_SUFFIX.get(inner.suffix.lower())


def _detect_format(path: Path) -> str:
    known = _detect_format_by_content(path) or format_of_name(path)
    if known is None and _looks_like_swf(path):
        known = "swf"
    if known is None:
        raise InputError(
            path,
            problem="has no extension of a workload format",
            remedy=f"rename it or name the format: {_FORMATS_TEXT}",
        )
    return known


def _detect_format_by_content(path: Path) -> str | None:
    """Return the format of a file that has no extension of its own, or that of another.

    These are sacct's, lists of pods, audit logs, and the traces of Alibaba and Google.
    """
    if format_of_name(path) not in (None, "batsim", "openb"):
        return None
    with open_input(path) as stream:
        head = stream.read(_HEAD_BYTES).decode("utf-8", errors="replace")
    first = head.partition("\n")[0]
    if delimiter_of(first) is not None:
        return "sacct"
    if first.startswith("{") and _AUDIT_GROUP in first:
        return "audit"
    if (cloud := _detect_cloud_format(first)) is not None:
        return cloud
    if _SACCT_JSON.search(head):
        raise InputError(
            path, problem="is what sacct --json writes, which changes from version to version", remedy=REMEDY
        )
    return "pods" if _POD_LIST.search(head) else None


def _detect_cloud_format(first: str) -> str | None:
    """Say whose trace begins with such a line. Few runs have one, so the readers load only where it may be."""
    if "," not in first or (first.startswith("{") and '"collection_id"' not in first):
        return None
    from batkube.workloads.formats.traces.alibaba import is_alibaba
    from batkube.workloads.formats.traces.google import is_instance_events, is_task_events

    if is_alibaba(first):
        return "alibaba"
    return "google" if is_task_events(first) or is_instance_events(first) else None


#: Both stand at the beginning of a list that kubectl writes, and in none of Batsim's workloads.
_POD_LIST = re.compile(r'^\s*\{\s*"apiVersion"\s*:\s*"[^"]*"\s*,\s*"(?:items"\s*:|kind"\s*:\s*"\w*List")')


#: How sacct's JSON begins, with Slurm 22.05 and with later ones.
_SACCT_JSON = re.compile(r'^\s*\{\s*"(?:meta"\s*:\s*\{\s*"plugin"|jobs"\s*:\s*\[\s*\{\s*"account")')


def _looks_like_swf(path: Path) -> bool:
    """Say whether the first line that is no comment has the 18 numbers of a job."""
    from batkube.workloads.formats.traces.swf import FIELD_COUNT

    with open_lines(path) as text:
        for line in itertools.islice(text, 1000):
            fields = line.split()
            if fields and not fields[0].startswith(";"):
                numbers = (field.lstrip("-").replace(".", "", 1).isdecimal() for field in fields)
                return len(fields) >= FIELD_COUNT and all(numbers)
    return False
