"""The page of a live cluster: a run in progress, or a served cluster."""

from __future__ import annotations

import threading
from types import TracebackType

from batkube.cluster.world import World
from batkube.kernel.instants import START, Instant
from batkube.page.columns import ColumnEncoder, resources_of
from batkube.page.document import render
from batkube.page.header import resource_label
from batkube.page.live.recorder import Recorder
from batkube.page.live.stream import DeltaStream
from batkube.page.server import PageServer

#: Seconds to wait for requests in progress.
_STOP_S = 2.0


class LivePage:
    """Records a world and serves its page from a thread of its own."""

    def __init__(self, world: World, name: str, summary: str, origin: Instant = START) -> None:
        """Record from now on. The times on the page count from `origin`."""
        recorder = Recorder(world, origin)
        resources = resources_of(recorder.nodes)
        self._stream = DeltaStream(recorder, resources)
        content = _document(name, summary, resources).encode()
        resource = {"": lambda _: ("text/html; charset=utf-8", content), "deltas": self._stream.answer}
        self._server = PageServer(resource)
        self._thread = threading.Thread(target=self._server.serve_forever, name="page", daemon=True)

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._server.url

    def finish(self) -> None:
        """Mark the stream as complete; pages remain usable."""
        self._stream.finish()

    def wait(self) -> None:
        """Serve until KeyboardInterrupt."""
        self._thread.join()

    def __enter__(self) -> LivePage:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_STOP_S)


def _document(name: str, summary: str, resources: tuple[str, ...]) -> str:
    """Return the page without any deltas."""
    header = {
        "name": name,
        "summary": summary,
        "warnings": [],
        "resources": resources,
        "labels": [resource_label(resource) for resource in resources],
        "mainResource": 0,
        "facts": [],
        "schedulers": {"columns": [], "rows": []},
    }
    chunk = ColumnEncoder(resources).chunk((), (), (), (), START)
    return render(name, {"runs": [{"header": header, "chunk": chunk}], "divergence": None, "live": True})
