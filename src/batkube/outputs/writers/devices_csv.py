"""devices.csv: a row for each allocation of a device to a claim."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from batkube.cluster.pods.device_claims import DeviceUse
from batkube.kernel.instants import format_seconds

COLUMNS = ("driver", "pool", "device", "claim", "pods", "allocated", "freed")


def write_devices(path: Path, uses: Iterable[DeviceUse]) -> None:
    """Write the header and the rows, in the order of the allocations."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for use in uses:
            freed = "" if use.until is None else format_seconds(use.until)
            device_cells = (use.driver, use.pool, use.device, use.claim, " ".join(use.pods))
            writer.writerow((*device_cells, format_seconds(use.since), freed))
