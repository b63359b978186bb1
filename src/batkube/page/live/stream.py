"""The stream of a live page: chunks of columns, each encoded when a page requests it.

A cursor is the number of chunks that a page has. A page that reconnects sends its last cursor and receives the chunks
since, so that it shows what a page that was never disconnected shows. Each chunk is encoded once for all pages, nothing
is encoded while no page is open, and time that passes without events makes no chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import msgspec

from batkube.kernel.instants import Instant
from batkube.page.columns import ColumnEncoder
from batkube.page.live.clock_commands import PageClock
from batkube.page.live.recorder import Recorder


class DeltaStream:
    """Encodes the records of a recorder, for any number of pages."""

    def __init__(self, recorder: Recorder, resources: Sequence[str], clock: PageClock | None = None) -> None:
        """`clock` is the clock of the cluster if it can be controlled."""
        self._recorder = recorder
        self._encoder = ColumnEncoder(resources)
        self._chunks: list[msgspec.Raw] = []
        self._encoded_counts = [0, 0, 0, 0]
        self._is_over = False
        self._lock = threading.Lock()
        self._clock = clock

    def finish(self) -> None:
        """Mark the stream as complete."""
        self._is_over = True

    def answer(self, parameters: Mapping[str, str]) -> tuple[str, bytes]:
        """Return the chunks since the cursor `since`, as JSON. An unknown cursor counts as the beginning."""
        since = parameters.get("since", "")
        is_over = self._is_over
        # Read before the lists: what has happened up to this instant is in them.
        end, clock = self._recorder.now, None
        if self._clock is not None and not is_over:
            reached, clock = self._clock.read()
            end = max(end, reached)
        with self._lock:
            self._encode_new_rows(end)
            chunks = self._chunks
            first = int(since) if since.isascii() and since.isdecimal() and int(since) <= len(chunks) else 0
            content = {
                "cursor": str(len(chunks)),
                "chunks": chunks[first:],
                "end": end // 1000,
                "isOver": is_over,
                "clock": clock,
            }
            return "application/json", msgspec.json.encode(content)

    def _encode_new_rows(self, end: Instant) -> None:
        recorder, encoded = self._recorder, self._encoded_counts
        # The deltas are counted first: the nodes, jobs and pods that they name were appended before them.
        counts = [len(column) for column in (recorder.deltas, recorder.nodes, recorder.jobs.jobs, recorder.pods)]
        if counts == encoded:
            return
        chunk = self._encoder.chunk(
            recorder.nodes[encoded[1] : counts[1]],
            recorder.jobs.jobs[encoded[2] : counts[2]],
            recorder.pods[encoded[3] : counts[3]],
            recorder.deltas.rows(encoded[0], counts[0]),
            end,
        )
        self._encoded_counts = counts
        self._chunks.append(msgspec.Raw(msgspec.json.encode(chunk)))
