"""Everything that happened, in order, with a running digest.

One JSON object per line: `t` (nanoseconds), `event`, then the event's own fields. The digest covers every byte
written so far, so two runs that agree on it agree on everything, and the first line at which two journals differ
is where the runs parted.
"""

from __future__ import annotations

import hashlib
from typing import BinaryIO

import msgspec

from batkube.kernel.instants import Instant

Field = str | int | float | bool | None

#: Lines are handed to the file and the hash in batches: one call per line costs more than the line itself.
_BATCH_LINES = 512


class Journal:
    """Writes the record of one run to `sink`; without one, as in a served cluster, it keeps nothing."""

    def __init__(self, sink: BinaryIO | None = None) -> None:
        self._sink = sink
        self._hash = hashlib.blake2b(digest_size=16)
        self._encode = msgspec.json.Encoder().encode
        self._batch: list[bytes] = []

    def append(self, now: Instant, event: str, **fields: Field) -> None:
        """Record that `event` happened at `now`."""
        if self._sink is None:
            return
        self._batch.append(self._encode({"t": now, "event": event, **fields}))
        if len(self._batch) >= _BATCH_LINES:
            self.flush()

    def flush(self) -> None:
        """Hand the lines so far to the file."""
        if self._batch and self._sink is not None:
            block = b"\n".join(self._batch) + b"\n"
            self._batch.clear()
            self._hash.update(block)
            self._sink.write(block)

    @property
    def digest(self) -> str:
        """The digest of all lines so far, in hexadecimal."""
        self.flush()
        return self._hash.hexdigest()
