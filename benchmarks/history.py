"""Measure the memory of `batkube serve --bare` for the history of a large object that is patched many times.

    python benchmarks/history.py [--patches 28000] [--kilobytes 50] [--quick]

A client patches a single entry of a ConfigMap, which contains many short texts or one long text. The table has the
peak memory of the server and its memory at the end. `--quick` sends 2,000 patches and does not record the results.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from api import Client, Served, ours  # beside this file
from recording import HERE, measured_commit, record

RESULTS = HERE / "results" / "history.md"
_MAPS = "/api/v1/namespaces/default/configmaps"
_PATCH = "application/merge-patch+json"
_LINE = 100
_SAMPLE_EVERY = 200


def contents(kilobytes: int, content: str) -> dict[str, str]:
    """Return the data of the ConfigMap."""
    if content == "one long text":
        return {"text": "x" * 1024 * kilobytes}
    return {f"key-{number:05}": "x" * (_LINE - 20) for number in range(1024 * kilobytes // _LINE)}


async def patch_repeatedly(server: Served, data: dict[str, str], patches: int) -> tuple[float, float]:
    """Create and patch the object; return the peak memory and the memory at the end, in MB."""
    client = await Client(server.url).open()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data}
    await client.send("POST", _MAPS, json.dumps(body).encode())
    peak = server.memory_mb()
    for number in range(patches):
        change = json.dumps({"data": {"count": str(number)}}).encode()
        await client.send("PATCH", f"{_MAPS}/large", change, _PATCH)
        if number % _SAMPLE_EVERY == 0:
            peak = max(peak, server.memory_mb())
    last = server.memory_mb()
    return max(peak, last), last


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--patches", type=int, default=28_000)
    parser.add_argument("--kilobytes", type=int, default=50)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    patches, subject = 2000 if options.quick else options.patches, measured_commit()
    table = ["| object | patches | at first | at most | at the end |", "|---|--:|--:|--:|--:|"]
    for content in ("many short texts", "one long text"):
        with tempfile.TemporaryDirectory() as folder, ours(Path(folder)) as server:
            first = server.memory_mb()
            most, last = asyncio.run(patch_repeatedly(server, contents(options.kilobytes, content), patches))
        row = f"{options.kilobytes} KB, {content} | {patches:,} | {first:.0f} MB | {most:.0f} MB | {last:.0f} MB"
        table.append(f"| {row} |")
        print(table[-1], flush=True)
    if not options.quick:
        record(RESULTS, subject, table)


if __name__ == "__main__":
    main()
