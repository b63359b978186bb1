"""The commands that made the workload files of a run, for reports and for the methods section of a paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from batkube.outputs.pages.markup import Markup
from batkube.outputs.pages.page import definition_list
from batkube.workloads.history import HASH_CHARACTERS, Step, converted_steps

#: The key of a manifest with the history of each converted or generated workload file.
_KEY = "workload_history"


def histories_in(manifest: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Step]]]:
    """Yield the path and the history of each workload file that has one."""
    histories = manifest.get(_KEY)
    for path, values in histories.items() if isinstance(histories, Mapping) else ():
        steps, _ = converted_steps(values)
        if steps:
            yield str(path), steps


def histories_list(histories: Iterable[tuple[str, Sequence[Step]]]) -> Markup | None:
    """Return each different history of a file, a step per line; None if there are none."""
    lines = dict.fromkeys(
        (path if number == 1 else "", f"{number}. {step}")
        for path, steps in dict.fromkeys((path, tuple(map(str, steps))) for path, steps in histories)
        for number, step in enumerate(steps, 1)
    )
    return definition_list(list(lines)) if lines else None


def origin_phrase(history: Sequence[Step]) -> str:
    """Return a phrase on the origin of a file: the commands that made it, their sources, and what they changed."""
    parts = [f"made{_origin(step)} by `{step.command_line}`{_counts(step)}" for step in history]
    return ", then ".join([*parts[:1], *(part.removeprefix("made ") for part in parts[1:])])


def _origin(step: Step) -> str:
    files = [f"`{source.name}` (SHA-256 `{source.sha256[:HASH_CHARACTERS]}`)" for source in step.sources]
    return f" from {' and '.join(files)}" if files else ""


def _counts(step: Step) -> str:
    # A backtick in a note of the reader would begin code.
    counts = "; ".join(step.counts).replace("`", "'")
    return f" ({counts})" if counts else ""
