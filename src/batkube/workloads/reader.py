"""Read a workload of any format. All other packages read workloads through this module."""

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

#: The module and the function that read each format. They are imported on demand, to save memory.
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
#: In every line of kube-apiserver's audit log.
_AUDIT_GROUP = "audit.k8s.io"
#: The number of bytes from which formats without an extension of their own are detected.
_HEAD_BYTES = 4096


def read_workload(
    path: Path,
    name: str = "w0",
    format: str | None = None,
    *,
    with_objects: bool = False,
    statuses: Collection[str] = (),
) -> Workload:
    """Read the workload at `path`; its jobs are in order of submission.

    The format is one of `FORMATS`; by default it is detected from content and extension. `name` becomes the first part
    of every job's identity. With `with_objects`, manifests that jobs cannot express are read as objects. `statuses`
    selects the jobs of an SWF trace by status.
    Raises InputError.
    """
    if not name or "!" in name:
        raise InputError(path, problem=f"cannot be named {name!r}", remedy="use a workload name without '!'")
    selected = format or _detect_format(path)
    if selected not in _READERS:
        raise InputError(path, problem=f"{selected!r} is not a workload format", remedy=f"formats: {_FORMATS_TEXT}")
    reader = _reader(selected)
    if statuses:
        if selected != "swf":
            problem = "has no job statuses; only traces in the Standard Workload Format (SWF) have them"
            raise InputError(path, problem=problem, remedy="omit --status")
        return reader(path, name, statuses)
    return reader(path, name, with_objects=True) if with_objects and selected == "manifests" else reader(path, name)


def _reader(format: str) -> Callable[..., Workload]:
    module, function = _READERS[format]
    return cast(Callable[..., Workload], getattr(importlib.import_module(f"batkube.workloads.{module}"), function))


def format_of_name(path: Path) -> str | None:
    """Return the format of the extension of `path`; None if it is not specific to a format."""
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return _FORMAT_OF_SUFFIX.get(inner.suffix.lower())


def _detect_format(path: Path) -> str:
    detected = _detect_format_by_content(path) or format_of_name(path)
    if detected is None and _looks_like_swf(path):
        detected = "swf"
    if detected is None:
        raise InputError(
            path,
            problem="has no extension of a workload format",
            remedy=f"rename it or name the format: {_FORMATS_TEXT}",
        )
    return detected


def _detect_format_by_content(path: Path) -> str | None:
    """Detect a format that has no extension of its own; return None for all other formats.

    These are sacct's lists, pod lists, audit logs, and the traces of Alibaba and Google. Some have the extension of
    another format, .json or .csv.
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
            path, problem="is output of sacct --json, which is not supported: it differs by version", remedy=REMEDY
        )
    return "pods" if _POD_LIST.search(head) else None


def _detect_cloud_format(first: str) -> str | None:
    """Detect an Alibaba or Google trace by its first line. Import their readers only if the line can belong to one."""
    if "," not in first or (first.startswith("{") and '"collection_id"' not in first):
        return None
    from batkube.workloads.formats.traces.alibaba import is_alibaba
    from batkube.workloads.formats.traces.google import is_instance_events, is_task_events

    if is_alibaba(first):
        return "alibaba"
    return "google" if is_task_events(first) or is_instance_events(first) else None


#: The beginning of a list from kubectl; no Batsim workload begins like this.
_POD_LIST = re.compile(r'^\s*\{\s*"apiVersion"\s*:\s*"[^"]*"\s*,\s*"(?:items"\s*:|kind"\s*:\s*"\w*List")')


#: The beginning of sacct's JSON, from Slurm 22.05 and from later versions.
_SACCT_JSON = re.compile(r'^\s*\{\s*"(?:meta"\s*:\s*\{\s*"plugin"|jobs"\s*:\s*\[\s*\{\s*"account")')


def _looks_like_swf(path: Path) -> bool:
    """Return whether the first line that is not a comment has the 18 numbers of a job."""
    from batkube.workloads.formats.traces.swf import FIELD_COUNT

    with open_lines(path) as text:
        for line in itertools.islice(text, 1000):
            fields = line.split()
            if fields and not fields[0].startswith(";"):
                numbers = (field.lstrip("-").replace(".", "", 1).isdecimal() for field in fields)
                return len(fields) >= FIELD_COUNT and all(numbers)
    return False
