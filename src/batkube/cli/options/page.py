"""The option --page of `run` and `serve`: a page that shows the cluster while it lives."""

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
    bool, typer.Option("--page", help="Show the cluster in a browser meanwhile; prints the address of the page.")
]


class ShownCluster:
    """The page of a cluster, once there is one."""

    def __init__(self, name: str, stack: contextlib.ExitStack) -> None:
        self._name = name
        self._stack = stack
        self._page: LivePage | None = None

    def start(self, simulation: Simulation) -> None:
        """Show the cluster of a run."""
        self.show(simulation.world, "a run in progress")

    def show(self, world: World, summary: str, *, from_now: bool = False) -> None:
        """Show a cluster; the time on the page counts from the start of the run, or from now."""
        from batkube.kernel.instants import START
        from batkube.page.live.live_page import LivePage

        page = LivePage(world, self._name, summary, world.clock.now if from_now else START)
        self._page = self._stack.enter_context(page)
        typer.echo(f"showing at {page.url}", err=True)

    def keep(self) -> None:
        """Keep the page of a run that is over, until Ctrl-C."""
        if self._page is None:
            return
        self._page.finish()
        typer.echo("the run is over; the page stays until Ctrl-C", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            self._page.wait()


@contextlib.contextmanager
def page_of_run(out: Path) -> Iterator[ShownCluster]:
    """Yield what shows the cluster of a run; its server is stopped at the end."""
    with contextlib.ExitStack() as stack:
        yield ShownCluster(out.name, stack)
