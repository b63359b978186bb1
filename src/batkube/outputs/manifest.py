"""manifest.json and fidelity.json: what was run, enough to run it again, and what to check before trusting it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec


def fingerprint(path: Path) -> dict[str, str]:
    """Return an input file's path and SHA-256."""
    with path.open("rb") as file:
        return {"path": str(path), "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def write_json(path: Path, content: object) -> None:
    """Write `content` indented, keys in the order given."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
