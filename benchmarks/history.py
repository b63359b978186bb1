"""What memory `batkube serve --bare` takes for the history of a large object that is changed again and again.

    python benchmarks/history.py [--patches 28000] [--kilobytes 50] [--quick]

One client patches one ConfigMap, each time a single entry of it; the object is many short texts, or one long one. What
the process has at most meanwhile is told, and what it has at the end. `--quick` sends 2,000 and writes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from api import Client, Served, ours  # beside this file
from recording import HERE, record, subject_of_now

RESULTS = HERE / "results" / "history.md"
_MAPS = "/api/v1/namespaces/default/configmaps"
_PATCH = "application/merge-patch+json"
_LINE = 100
_LOOK_EVERY = 200


def contents(kilobytes: int, texts: str) -> dict[str, str]:
    """Return what the object holds."""
    if texts == "one long text":
        return {"text": "x" * 1024 * kilobytes}
    return {f"key-{number:05}": "x" * (_LINE - 20) for number in range(1024 * kilobytes // _LINE)}


async def patched(server: Served, data: dict[str, str], patches: int) -> tuple[float, float]:
    """Patch an object so often; return the most memory that was seen, and the last, in MB."""
    client = await Client(server.url).open()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data}
    await client.ask("POST", _MAPS, json.dumps(body).encode())
    most = server.memory_mb()
    for number in range(patches):
        change = json.dumps({"data": {"count": str(number)}}).encode()
        await client.ask("PATCH", f"{_MAPS}/large", change, _PATCH)
        if number % _LOOK_EVERY == 0:
            most = max(most, server.memory_mb())
    last = server.memory_mb()
    return max(most, last), last


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--patches", type=int, default=28_000)
    parser.add_argument("--kilobytes", type=int, default=50)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    patches, subject = 2000 if options.quick else options.patches, subject_of_now()
    table = ["| object | patches | at first | at most | at the end |", "|---|--:|--:|--:|--:|"]
    for texts in ("many short texts", "one long text"):
        with tempfile.TemporaryDirectory() as folder, ours(Path(folder)) as server:
            first = server.memory_mb()
            most, last = asyncio.run(patched(server, contents(options.kilobytes, texts), patches))
        row = f"{options.kilobytes} KB, {texts} | {patches:,} | {first:.0f} MB | {most:.0f} MB | {last:.0f} MB"
        table.append(f"| {row} |")
        print(table[-1], flush=True)
    if not options.quick:
        record(RESULTS, subject, table)


if __name__ == "__main__":
    main()
