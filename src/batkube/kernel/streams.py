"""Named, seeded randomness.

Every use of chance has a name and so its own generator, derived from the run's seed and that name alone: adding a
stream, or drawing more from one, never disturbs another.
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
        """Return the generator called `name`; the same object for the same name."""
        stream = self._by_name.get(name)
        if stream is None:
            stream = self._by_name[name] = self.create(name)
        return stream

    def create(self, name: str) -> random.Random:
        """Return the generator called `name` at its beginning; it is not kept, for names that are used once."""
        digest = hashlib.sha256(f"{self.seed}:{name}".encode()).digest()
        return random.Random(int.from_bytes(digest[:16]))
