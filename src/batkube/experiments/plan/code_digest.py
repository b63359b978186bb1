"""Which code made a result: a digest of our own modules, as far as they decide what comes out of a run.

A version number does not do. It stays the same while somebody works on Batkube, and runs that were finished before a
change must not pass for runs after it. What only starts runs and tells of them is left out.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

_EXCLUDED_PACKAGES = ("cli", "experiments")
_SUFFIXES = (".py", ".yaml", ".json")


@functools.cache
def code_digest() -> str:
    """Return the digest, the same for a process's whole life."""
    package = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        place = path.relative_to(package)
        if path.suffix in _SUFFIXES and place.parts[0] not in _EXCLUDED_PACKAGES:
            digest.update(f"{place.as_posix()}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
