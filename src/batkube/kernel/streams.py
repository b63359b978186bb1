"""Named, seeded random streams.

Each use of randomness has a name and a generator of its own, derived from the run's seed and the name only. Adding a
stream, or drawing more from one, does not change any other.
"""

from __future__ import annotations

import hashlib
import random


class Streams:
    """The random generators of one run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._by_name: dict[str, random.Random] = {}

    def named(self, name: str) -> random.Random:
        """Return the generator `name`; the same object for the same name."""
        stream = self._by_name.get(name)
        if stream is None:
            stream = self._by_name[name] = self.create(name)
        return stream

    def create(self, name: str) -> random.Random:
        """Return a new generator for `name` without storing it, for names that are used once."""
        digest = hashlib.sha256(f"{self.seed}:{name}".encode()).digest()
        return random.Random(int.from_bytes(digest[:16]))
