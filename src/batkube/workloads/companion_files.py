"""Find the files that a workload file refers to. A copy of the workload must include them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.workloads.files import read_bytes
from batkube.workloads.formats.batsim.usage_traces import trace_files
from batkube.workloads.formats.traces.cloud_tasks import companion_table
from batkube.workloads.reader import format_of_name

_USAGE_TRACE = "usage_trace"


def companion_files(workload: Path) -> list[Path]:
    """Return the existing files that a workload refers to.

    These are the usage traces of Batsim profiles, and the second table of an Alibaba or Google trace. The name of the
    second table follows from the name of the first.
    """
    if (companion := companion_table(workload)) is not None:
        return [companion]
    if format_of_name(workload) != "batsim":
        return []
    content = read_bytes(workload)
    if _USAGE_TRACE.encode() not in content:
        return []
    traces = list(dict.fromkeys(workload.parent / name for name in _usage_trace_names(content)))
    return [file for trace in traces if trace.is_file() for file in (trace, *trace_files(trace)) if file.is_file()]


def _usage_trace_names(content: bytes) -> Iterator[str]:
    """Yield the names of the usage traces in the profiles. Skip invalid profiles: reading the workload reports them."""
    try:
        profiles: Any = msgspec.json.decode(content)["profiles"].values()
    except (msgspec.DecodeError, KeyError, AttributeError, TypeError):
        return
    for profile in profiles:
        if isinstance(profile, Mapping) and profile.get("type") == _USAGE_TRACE:
            yield str(profile.get("trace", ""))
