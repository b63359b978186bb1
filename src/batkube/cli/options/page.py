"""The option --page of `run` and `serve`: a page that shows the cluster during the run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batkube.kernel.errors import InputError
from batkube.timing.time_rules import TimeMode, TimeRules

if TYPE_CHECKING:
    from batkube.page.live.live_page import LivePage
    from batkube.serving.observed_cluster import ObservedCluster
    from batkube.simulation.assembly import Simulation
    from batkube.timing.clock_controls import ClockControls
    from batkube.timing.run_clock import PausableClock

PageOption = Annotated[
    bool, typer.Option("--page", help="Serve a page that shows the cluster during the run; prints its address.")
]


PausedOption = Annotated[
    bool, typer.Option("--paused", help="With --page: begin paused, until the run is resumed on the page.")
]


class PageSession:
    """Serves the page of a cluster, once the cluster exists."""

    def __init__(self, name: str, stack: contextlib.ExitStack) -> None:
        self._name = name
        self._stack = stack
        self._page: LivePage | None = None

    def start(self, simulation: Simulation, clock: ClockControls | None) -> None:
        """Serve the page of a run's cluster, with the controls of its clock."""
        from batkube.page.live.live_page import LivePage

        self._show(LivePage(simulation.world, self._name, "a run in progress", clock=clock))

    def show(self, cluster: ObservedCluster) -> None:
        """Serve the page of a served cluster."""
        from batkube.page.live.live_page import LivePage

        self._show(LivePage.of_cluster(cluster, self._name))

    def _show(self, page: LivePage) -> None:
        self._page = self._stack.enter_context(page)
        typer.echo(f"showing at {page.url}", err=True)

    def wait_for_interrupt(self, out: Path) -> None:
        """Serve the page of the finished run, whose files are in `out`, until Ctrl-C."""
        if self._page is None:
            return
        self._page.finish(out)
        typer.echo("the run has ended; the page is served until Ctrl-C", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            self._page.wait()


@contextlib.contextmanager
def page_of_cluster(out: Path) -> Iterator[PageSession]:
    """Yield the page session of a cluster; its server is stopped at the end."""
    with contextlib.ExitStack() as stack:
        yield PageSession(out.name, stack)


def run_clock_of(time: TimeRules, *, is_paused: bool) -> PausableClock | None:
    """Return the controls of a run's clock, or None if programs run in real time. Raises InputError."""
    from batkube.timing.run_clock import PausableClock

    if time.mode is TimeMode.EXACT:
        return PausableClock(is_paused=is_paused)
    if is_paused:
        problem = f"cannot be combined with --time {time.mode}, in which programs run in real time"
        raise InputError("--paused", problem=problem, remedy="omit it, or use --time exact")
    return None
