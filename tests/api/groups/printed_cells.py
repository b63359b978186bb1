"""The printed cells of an object, by column."""

from __future__ import annotations

from typing import Any

from batkube.api.groups.scheme.printing import PRINTERS
from batkube.kernel.instants import instant_of

NOW = instant_of("2026-11-15T20:40:00Z")


def printed(storage: str, value: dict[str, Any]) -> dict[str, Any]:
    printer = PRINTERS[storage]
    return dict(
        zip((column["name"] for column in printer.columns), printer.cells(value, NOW), strict=storage != "ipaddresses")
    )
