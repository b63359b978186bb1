"""The options of a command line that go into the history of the workload that the command makes.

They are derived from the command's declaration, so that a new option is recorded without further code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer

from batkube.version import __version__
from batkube.workloads.companion_files import companion_files
from batkube.workloads.files import STANDARD_INPUT
from batkube.workloads.history import Source, Step, source_of

#: Parameters that do not affect the content of the output: its sources are recorded with their hashes.
UNRECORDED = ("input", "output", "output_format", "force")
#: Parameters whose value may be a file: the platform of --for.
_FILE_OPTIONS = ("platform",)


def step_of(context: typer.Context, jobs: int, changes: dict[str, int]) -> Step:
    """Return the history step of a command that writes a workload of `jobs`."""
    source = context.params.get("input")
    return Step(
        command=f"batkube workload {context.command.name}",
        batkube=__version__,
        options=tuple(_words(context)),
        sources=() if source is None else tuple(_sources(context, source)),
        jobs=jobs,
        changes=changes,
    )


def _words(context: typer.Context) -> Iterator[str]:
    """Yield the parameters that differ from their defaults, as words of a command line."""
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if parameter.name in UNRECORDED or value == parameter.get_default(context) or value in (None, (), []):
            continue
        if parameter.param_type_name == "argument":
            yield str(value)
            continue
        option = max(parameter.opts, key=len)
        if isinstance(value, bool):
            yield option if value else max(parameter.secondary_opts, key=len)
        else:
            for one in value if isinstance(value, list | tuple) else [value]:
                yield from (option, str(one))


def _sources(context: typer.Context, source: Path) -> Iterator[Source]:
    """Yield the input, the files that it names, and files among the values of options."""
    yield source_of(source)
    if source != STANDARD_INPUT:
        yield from map(source_of, companion_files(source))
    for name in _FILE_OPTIONS:
        value = context.params.get(name)
        if value is not None and Path(value).is_file():
            yield source_of(Path(value))
