"""A page of a cluster that lives: a run in progress, or a served cluster."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from batkube.cluster.world import World
from batkube.kernel.instants import START, Instant
from batkube.page.answers import Answer, NoAnswer, text_answer
from batkube.page.columns import ColumnEncoder, resources_of
from batkube.page.document import render
from batkube.page.explanations import Explanations
from batkube.page.header import resource_label
from batkube.page.live.clock_commands import PageClock
from batkube.page.live.cluster_actions import ClusterActions
from batkube.page.live.live_objects import LiveObjects
from batkube.page.live.recorder import Recorder
from batkube.page.live.stream import DeltaStream
from batkube.page.server import PageCommand, PageResource, PageServer
from batkube.serving.observed_cluster import ObservedCluster
from batkube.timing.clock_controls import ClockControls

#: Seconds to wait for requests in progress.
_STOP_S = 2.0
_RUN_GOES_ON = "Explanations read the run's files, which are complete once the run is over."


class LivePage:
    """Records a world and serves its page from a thread of its own."""

    def __init__(
        self,
        world: World,
        name: str,
        summary: str,
        *,
        origin: Instant = START,
        clock: ClockControls | None = None,
        actions: ClusterActions | None = None,
    ) -> None:
        """Record from now on; the time on the page counts from `origin`.

        * `clock`: The controls of time; None if it cannot be controlled.
        * `actions`: What the page can change; None for a run.
        """
        recorder = Recorder(world, origin)
        resources = resources_of(recorder.nodes)
        page_clock = None if clock is None else PageClock(clock, origin)
        self._stream = DeltaStream(recorder, resources, page_clock)
        #: Explains the run once it is over; None before, and for served clusters.
        self._explanations: Explanations | None = None
        self._is_run = actions is None
        server = {
            "clock": None if page_clock is None else page_clock.features,
            "actions": actions is not None,
            "yaml": True,
            "explain": self._is_run,
        }
        content = _document(name, summary, resources, server).encode()
        answers: dict[str, PageResource] = {
            "": lambda _: ("text/html; charset=utf-8", content),
            "deltas": self._stream.answer,
            "yaml": LiveObjects(recorder, world, None if actions is None else actions.client).yaml,
            "explain": self._explain,
        }
        commands: dict[str, PageCommand] = {}
        if page_clock is not None:
            commands["clock"] = page_clock.carry_out
        if actions is not None:
            answers["choices"] = actions.choices
            commands["act"] = actions.carry_out
        self._server = PageServer(answers, commands=commands)
        self._thread = threading.Thread(target=self._server.serve_forever, name="page", daemon=True)

    @classmethod
    def of_cluster(cls, cluster: ObservedCluster, name: str) -> LivePage:
        """Return the page of a served cluster; its time counts from now."""
        world, actions = cluster.world, ClusterActions(cluster)
        return cls(world, name, "a served cluster", origin=world.clock.now, clock=cluster.clock, actions=actions)

    @property
    def url(self) -> str:
        """The address of the page."""
        return self._server.url

    def finish(self, folder: Path) -> None:
        """Report to pages that nothing will follow; they can still be used. `folder` has the files of the run."""
        self._explanations = Explanations(folder)
        self._stream.finish()

    def _explain(self, parameters: Mapping[str, str]) -> Answer:
        explanations = self._explanations

        def explain() -> str:
            if explanations is None:
                raise NoAnswer(_RUN_GOES_ON)
            return explanations.text_of(parameters)

        return text_answer(explain)

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


def _document(name: str, summary: str, resources: tuple[str, ...], server: Mapping[str, object]) -> str:
    """Return the page before it has received anything."""
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
    data = {"runs": [{"header": header, "chunk": chunk}], "divergence": None, "live": True, "server": server}
    return render(name, data)
