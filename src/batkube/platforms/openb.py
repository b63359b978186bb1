"""Reads platforms from node lists of openb, Alibaba's GPU cluster trace of 2023."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, GPU, MEMORY
from batkube.platforms.builder import build_platform, parse_amount, with_default_pods
from batkube.platforms.model import Machine, Platform

#: The label for the GPU model in the simulator of the trace's authors.
GPU_MODEL_LABEL = "alibabacloud.com/gpu-card-model"

_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_REMEDY = f"write the columns {','.join(_COLUMNS)} of an openb node list"


def parse_openb_nodes(path: Path, text: str) -> Platform:
    """Return the platform of an openb node list, with the machines in the order of its lines. Raise InputError."""
    source = str(path)
    rows = csv.DictReader(io.StringIO(text, newline=""))
    try:
        missing = [column for column in _COLUMNS if column not in (rows.fieldnames or ())]
        if missing:
            raise InputError(source, at="line 1", problem=f"no column {', '.join(missing)}", remedy=_REMEDY)
        machines = [_machine(source, rows.line_num, number, row) for number, row in enumerate(rows)]
    except csv.Error as error:
        raise InputError(source, at=f"line {rows.line_num}", problem=f"not CSV: {error}", remedy=_REMEDY) from None
    return build_platform(source, machines, remedy=_REMEDY)


def _machine(source: str, line: int, number: int, row: dict[str, str]) -> Machine:
    at = f"line {line}"
    if None in row or None in row.values() or not row["sn"]:
        raise InputError(
            source,
            at=at,
            problem="the number of values differs from that of columns, or the name is empty",
            remedy=_REMEDY,
        )
    capacity = {
        CPU: parse_amount(source, f"{at}, cpu_milli", CPU, f"{row['cpu_milli']}m"),
        MEMORY: parse_amount(source, f"{at}, memory_mib", MEMORY, f"{row['memory_mib']}Mi"),
    }
    gpus = parse_amount(source, f"{at}, gpu", GPU, row["gpu"])
    if gpus:
        capacity[GPU] = gpus
    labels = {GPU_MODEL_LABEL: row["model"]} if gpus and row["model"] else {}
    return Machine(id=number, name=row["sn"], capacity=with_default_pods(capacity), labels=labels)
