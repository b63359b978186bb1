"""Labels of runs that are shown side by side."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import abspath
from pathlib import Path


def labels_of(paths: Sequence[Path]) -> list[str]:
    """Return the shortest distinguishing ends of the paths, without the part that all of them end in."""
    parts = [[*Path(abspath(path)).parts[1:-1], _stem(Path(abspath(path)).name)] for path in paths]
    if len({tuple(each) for each in parts}) > 1:
        while len({each[-1] for each in parts}) == 1 and all(len(each) > 1 for each in parts):
            parts = [each[:-1] for each in parts]
    labels: list[str] = []
    for number, mine in enumerate(parts):
        rivals = [each for other, each in enumerate(parts) if other != number and each != mine]
        length = 1
        while length < len(mine) and any(each[-length:] == mine[-length:] for each in rivals):
            length += 1
        label = "/".join(mine[-length:])
        same = parts[:number].count(mine)
        labels.append(f"{label} ({same + 1})" if same else label)
    return labels


def _stem(name: str) -> str:
    return name.removesuffix(".csv").removesuffix("_jobs")
