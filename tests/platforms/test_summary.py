"""The one-line summary of a platform."""

from __future__ import annotations

import pytest

from batkube.kernel.quantities import CPU, PODS
from batkube.platforms.model import Machine, Platform
from batkube.platforms.reader import read_platform
from batkube.platforms.summary import describe


@pytest.mark.parametrize(
    ("spec", "summary"),
    [
        ("1x6,4Gi", "1 machine: 6 cpu, 4Gi"),
        ("16x1,4Gi", "16 machines: 16 × 1 cpu, 4Gi"),
        ("2x500m + 1x1", "3 machines: 2 × 500m cpu + 1 × 1 cpu"),
        (
            "1x1 + 2x2 + 3x3 + 4x4 + 5x5 + 6x6",
            "21 machines: 1 × 1 cpu + 2 × 2 cpu + 3 × 3 cpu + 4 × 4 cpu + 11 of 2 other kinds",
        ),
    ],
)
def test_machines_are_grouped_by_capacity(spec: str, summary: str) -> None:
    assert describe(read_platform(spec)) == summary


def test_an_unusual_number_of_pods_is_mentioned() -> None:
    machine = Machine(id=0, name="a", capacity={CPU: 1000, PODS: 250})

    assert describe(Platform(source="here", machines=(machine,))) == "1 machine: 1 cpu, 250 pods"
