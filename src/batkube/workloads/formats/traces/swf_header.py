"""Read and write the header of an SWF trace: comments at its top of the form `; Label: value`.

Parallel Workloads Archive, "The Standard Workload Format", version 2.2, "Header Comments".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from batkube.kernel.numbers import parse_int
from batkube.workloads.files import open_lines
from batkube.workloads.history import STEP_LABEL, step_text, steps_in
from batkube.workloads.model import TraceHeader

Labels = list[tuple[str, str]]
"""The labels of a header and their values, in the order of the file. A label can occur several times."""

#: Labels that stay valid for every part or transformation of a trace: its origin and time zone.
_STABLE_LABELS = ("Computer", "Installation", "Acknowledge", "Information", "TimeZone", "TimeZoneString")
_START_LABEL = "UnixStartTime"
_LABEL = re.compile(r";\s*(\w+)\s*:\s*(\S.*)")
_FIRST_NUMBER = re.compile(r"[0-9]+")
_NUMBERED = re.compile(r"([0-9]+)\s+(\S.*)")


def header_labels(path: Path) -> Labels:
    """Return the labels at the top of the trace at `path`."""
    labels: Labels = []
    with open_lines(path) as text:
        for line in text:
            if not line.startswith(";") and line.strip():
                break
            if match := _LABEL.match(line):
                value = match[2].rstrip() if match[1] == STEP_LABEL else " ".join(match[2].split())
                labels.append((match[1], value))
    return labels


def machine_size(labels: Labels) -> int | None:
    """Return the number of processors (MaxProcs), or else of nodes (MaxNodes); None if the header has neither."""
    return _first_number(labels, "MaxProcs") or _first_number(labels, "MaxNodes")


def trace_header(labels: Labels) -> TraceHeader:
    """Return the part of a header that is kept when the trace is written again."""
    return TraceHeader(
        unix_start_s=_first_number(labels, _START_LABEL),
        queue_names=_names_by_number(labels, "Queue"),
        partition_names=_names_by_number(labels, "Partition"),
        comments=tuple((label, value) for label, value in labels if label in _STABLE_LABELS),
        history=steps_in(_steps(labels))[0],
    )


def unreadable_steps(labels: Labels) -> int:
    """Return the number of steps of the history that are not readable."""
    return steps_in(_steps(labels))[1]


def _steps(labels: Labels) -> Iterator[str]:
    return (value for label, value in labels if label == STEP_LABEL)


def header_text(header: TraceHeader) -> Iterator[str]:
    """Yield the lines of a header without the names of queues and partitions."""
    yield from (f"; {label}: {value}\n" for label, value in header.comments)
    if header.unix_start_s is not None:
        yield f"; {_START_LABEL}: {header.unix_start_s}\n"
    yield from (f"; {STEP_LABEL}: {step_text(step)}\n" for step in header.history)


def _first_number(labels: Labels, label: str) -> int | None:
    """Return the first number of a label; None if it is absent, 0 or absurdly long."""
    values = (match for name, value in labels if name == label and (match := _FIRST_NUMBER.match(value)))
    return next((parse_int(match[0]) or None for match in values), None)


def _names_by_number(labels: Iterable[tuple[str, str]], label: str) -> dict[str, str]:
    """Return names by number, from lines such as `; Queue: 2 high`."""
    values = (match for name, value in labels if name == label and (match := _NUMBERED.match(value)))
    return {match[1]: match[2] for match in values}
