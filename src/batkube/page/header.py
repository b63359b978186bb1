"""The header of a run on the page: its name, summary, warnings and facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from batkube.kernel.errors import InputError
from batkube.kernel.instants import human_duration
from batkube.kernel.quantities import GPU, MACHINE
from batkube.outputs.measures.run_data.run_files import RunFiles
from batkube.outputs.measures.run_data.text_table import read_table
from batkube.outputs.playback.playback import Playback

#: The names of resources for readers.
_LABELS = {GPU: "gpus", MACHINE: "machines"}


def header_of(playback: Playback, name: str, resources: Sequence[str]) -> dict[str, Any]:
    """Return the header of a run."""
    files = playback.files
    return {
        "name": name,
        "summary": _summary(playback),
        "warnings": [*filter(None, (files.failure_remark, files.violation_remark, files.change_remark))],
        "resources": list(resources),
        "labels": [resource_label(resource) for resource in resources],
        "mainResource": resources.index(playback.main_resource) if playback.main_resource in resources else 0,
        "facts": [list(fact) for fact in _facts(files)],
        "schedulers": _schedulers_table(files),
    }


def resource_label(resource: str) -> str:
    """Return a short name: what follows the domain of an extended resource."""
    return _LABELS.get(resource) or resource.rpartition("/")[2]


def _summary(playback: Playback) -> str:
    counts = ((len(playback.nodes), "node"), (len(playback.jobs), "job"), (len(playback.pods), "pod"))
    parts = [playback.files.scheduler, *(f"{count:,} {noun}{'s' * (count != 1)}" for count, noun in counts)]
    return " · ".join(filter(None, (*parts, human_duration(playback.end))))


def _facts(files: RunFiles) -> Iterator[tuple[str, str]]:
    manifest = files.manifest
    for label, key in (("scheduler", "scheduler"), ("seed", "seed"), ("Batkube", "batkube"), ("digest", "digest")):
        if manifest.get(key) not in (None, ""):
            yield label, str(manifest[key])
    programs = (manifest.get("real") or {}).get("programs") or []
    for number, program in enumerate(manifest.get("programs") or []):
        yield str(program.get("name", "program")), str(program.get("version") or "unknown version")
        cost = programs[number] if number < len(programs) else {}
        if "cpu_s" in cost:
            yield "its CPU time", f"{cost['cpu_s']:,.2f} s"


def _schedulers_table(files: RunFiles) -> dict[str, list[Any]]:
    """Return schedulers.csv, which a run with several schedulers has."""
    path = files.beside("schedulers.csv")
    if not path.is_file():
        return {"columns": [], "rows": []}
    columns = read_table(path).columns
    if "scheduler" not in columns:
        raise InputError(path, at="line 1", problem="lacks the column scheduler", remedy="use the folder of a run")
    names = [name.replace("_", " ") for name in columns]
    return {"columns": names, "rows": [list(cells) for cells in zip(*columns.values(), strict=True)]}
