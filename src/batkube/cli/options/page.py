"""The option --page of `run` and `serve`: a page that shows the cluster during the run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from batkube.cluster.world import World
    from batkube.page.live.live_page import LivePage
    from batkube.simulation.assembly import Simulation

PageOption = Annotated[
    bool, typer.Option("--page", help="Serve a page that shows the cluster during the run; prints its address.")
]


class PageSession:
    """Serves the page of a cluster, once the cluster exists."""

    def __init__(self, name: str, stack: contextlib.ExitStack) -> None:
        self._name = name
        self._stack = stack
        self._page: LivePage | None = None

    def start(self, simulation: Simulation) -> None:
        """Serve the page of a run's cluster."""
        self.show(simulation.world, "a run in progress")

    def show(self, world: World, summary: str, *, from_now: bool = False) -> None:
        """Serve the page of a cluster. Its times count from the start of the run, or from now."""
        from batkube.kernel.instants import START
        from batkube.page.live.live_page import LivePage

        page = LivePage(world, self._name, summary, world.clock.now if from_now else START)
        self._page = self._stack.enter_context(page)
        typer.echo(f"showing at {page.url}", err=True)

    def wait_for_interrupt(self) -> None:
        """Serve the page of the finished run until Ctrl-C."""
        if self._page is None:
            return
        self._page.finish()
        typer.echo("the run has ended; the page is served until Ctrl-C", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            self._page.wait()


@contextlib.contextmanager
def page_of_run(out: Path) -> Iterator[PageSession]:
    """Yield the page session of a run; its server is stopped at the end."""
    with contextlib.ExitStack() as stack:
        yield PageSession(out.name, stack)
