"""The stream of a live page: chunks of columns, each encoded when a page requests it.

A cursor is the number of chunks that a page has. A page that reconnects sends its last cursor and receives the chunks
since, so it shows the same as a page that was never disconnected. Nothing is encoded while no page is open.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import msgspec

from batkube.page.columns import ColumnEncoder
from batkube.page.live.recorder import Recorder


class DeltaStream:
    """Encodes the records of a recorder, for any number of pages."""

    def __init__(self, recorder: Recorder, resources: Sequence[str]) -> None:
        self._recorder = recorder
        self._encoder = ColumnEncoder(resources)
        self._chunks: list[msgspec.Raw] = []
        self._encoded_counts = [0, 0, 0, 0]
        self._end = -1
        self._is_over = False
        self._lock = threading.Lock()

    def finish(self) -> None:
        """Mark the stream as complete."""
        self._is_over = True

    def answer(self, parameters: Mapping[str, str]) -> tuple[str, bytes]:
        """Return the chunks since the cursor `since`, as JSON. An unknown cursor counts as the beginning."""
        since = parameters.get("since", "")
        with self._lock:
            is_over = self._is_over
            self._encode_new_rows()
            chunks = self._chunks
            first = int(since) if since.isascii() and since.isdecimal() and int(since) <= len(chunks) else 0
            content = {"cursor": str(len(chunks)), "chunks": chunks[first:], "isOver": is_over}
            return "application/json", msgspec.json.encode(content)

    def _encode_new_rows(self) -> None:
        recorder, encoded = self._recorder, self._encoded_counts
        end = recorder.now
        # The deltas are counted first: the nodes, jobs and pods that they name were appended before them.
        counts = [len(column) for column in (recorder.deltas, recorder.nodes, recorder.jobs.jobs, recorder.pods)]
        if counts == encoded and end == self._end:
            return
        self._end = max(end, recorder.deltas[counts[0] - 1].at if counts[0] else end)
        chunk = self._encoder.chunk(
            recorder.nodes[encoded[1] : counts[1]],
            recorder.jobs.jobs[encoded[2] : counts[2]],
            recorder.pods[encoded[3] : counts[3]],
            recorder.deltas[encoded[0] : counts[0]],
            self._end,
        )
        self._encoded_counts = counts
        self._chunks.append(msgspec.Raw(msgspec.json.encode(chunk)))
