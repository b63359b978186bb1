"""Files that an input file names: whoever takes it elsewhere has to take them along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from batkube.workloads.files import read_bytes
from batkube.workloads.formats.batsim.usage_traces import trace_files
from batkube.workloads.reader import format_of_name

_USAGE_TRACE = "usage_trace"


def companion_files(workload: Path) -> list[Path]:
    """Return the files that a workload names, as far as they are there: the usage traces of Batsim's profiles.

    So are those that a trace in several tables is read with, which it names by its own name.
    """
    if (beside := _companion_table(workload)) is not None:
        return [beside]
    if format_of_name(workload) != "batsim":
        return []
    content = read_bytes(workload)
    if _USAGE_TRACE.encode() not in content:
        return []
    traces = list(dict.fromkeys(workload.parent / name for name in _usage_trace_names(content)))
    return [file for trace in traces if trace.is_file() for file in (trace, *trace_files(trace)) if file.is_file()]


def _companion_table(workload: Path) -> Path | None:
    """Return the other table of a trace of Alibaba's or Google's; few runs have such, so their readers load late."""
    if "batch_instance" in workload.name:
        from batkube.workloads.formats.traces.alibaba import companion_task_table

        return companion_task_table(workload)
    if "instance_events" in workload.name:
        from batkube.workloads.formats.traces.google import companion_collection_events

        return companion_collection_events(workload)
    return None


def _usage_trace_names(content: bytes) -> Iterator[str]:
    """Yield what the profiles of a workload call their traces; what is wrong with a profile is for a run to say."""
    try:
        profiles: Any = msgspec.json.decode(content)["profiles"].values()
    except (msgspec.DecodeError, KeyError, AttributeError, TypeError):
        return
    for profile in profiles:
        if isinstance(profile, Mapping) and profile.get("type") == _USAGE_TRACE:
            yield str(profile.get("trace", ""))
