"""Labels of runs that are shown side by side."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import abspath
from pathlib import Path


def labels_of(paths: Sequence[Path]) -> list[str]:
    """Return the shortest distinguishing ends of the paths, without their common end."""
    parts = [[*Path(abspath(path)).parts[1:-1], _stem(Path(abspath(path)).name)] for path in paths]
    if len({tuple(part) for part in parts}) > 1:
        while len({part[-1] for part in parts}) == 1 and all(len(part) > 1 for part in parts):
            parts = [part[:-1] for part in parts]
    labels: list[str] = []
    for number, own in enumerate(parts):
        others = [part for other, part in enumerate(parts) if other != number and part != own]
        length = 1
        while length < len(own) and any(part[-length:] == own[-length:] for part in others):
            length += 1
        label = "/".join(own[-length:])
        same = parts[:number].count(own)
        labels.append(f"{label} ({same + 1})" if same else label)
    return labels


def _stem(name: str) -> str:
    return name.removesuffix(".csv").removesuffix("_jobs")
