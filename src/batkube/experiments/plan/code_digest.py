"""Digest of the modules of Batkube that determine the results of a run.

A version number is not enough: it stays the same during development, and runs from before a change must not be mistaken
for runs after it. Modules that only start runs or present their results are left out.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

_EXCLUDED_PACKAGES = ("cli", "experiments")
_SUFFIXES = (".py", ".yaml", ".json")


@functools.cache
def code_digest() -> str:
    """Return the digest, computed once per process."""
    package = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package)
        if path.suffix in _SUFFIXES and place.parts[0] not in _EXCLUDED_PACKAGES:
            digest.update(f"{place.as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
