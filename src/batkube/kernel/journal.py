"""The journal of a run: all its events in order, and their digest.

One JSON object per line: `t` (nanoseconds), `event`, then the fields of the event. The digest covers every byte
written, so runs with equal digests had the same events. The first line at which two journals differ is where the runs
diverged.
"""

from __future__ import annotations

import hashlib
from typing import BinaryIO

import msgspec

from batkube.kernel.instants import Instant

#: Lines are hashed and written in batches: one call per line would cost more than the line itself.
_BATCH_LINES = 512


class Journal:
    """Writes the events of one run to `sink`; without a sink, as in a served cluster, it records nothing."""

    def __init__(self, sink: BinaryIO | None = None) -> None:
        self._sink = sink
        self._hash = hashlib.blake2b(digest_size=16)
        self._encode = msgspec.json.Encoder().encode
        self._batch: list[bytes] = []

    @property
    def is_recorded(self) -> bool:
        """Whether events are recorded."""
        return self._sink is not None

    def append(self, now: Instant, event: str, **fields: object) -> None:
        """Record `event` at `now`, with fields of any type that JSON has."""
        if self._sink is None:
            return
        self._batch.append(self._encode({"t": now, "event": event, **fields}))
        if len(self._batch) >= _BATCH_LINES:
            self.flush()

    def flush(self) -> None:
        """Write the batched lines to the sink."""
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
