"""A page in a browser, as tests see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tests.outputs.playback.lives import Lives

from batkube.kernel.instants import Instant
from batkube.outputs.playback.deltas import deltas_of
from batkube.outputs.playback.states import State
from batkube.page.columns import ColumnEncoder, resources_of
from batkube.page.document import render

#: Milliseconds; generous, because loaded machines are slow.
TIMEOUT_MS = 60_000


class OpenPage:
    """An open page, with the requests that it made and the errors that it printed."""

    def __init__(self, context: Any, url: str) -> None:  # noqa: ANN401 - Playwright has its own types
        self._context = context
        self.browser_page = page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type != "log" else None)
        page.goto(url)
        wait_until(page, "Boolean(window.batkube)")

    def states_at(self, at: Instant) -> list[dict[str, Any]]:
        """Return the state that the page shows at an instant, for each run."""
        return list(self.browser_page.evaluate("time => window.batkube.stateAt(time)", at // 1000))

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.browser_page.locator(selector).inner_text())

    def close(self) -> None:
        """Close the page. It has printed no error, and has only requested its own address."""
        self._context.close()
        assert self.errors == []
        origin = self.requests[0].partition("#")[0].rpartition("/")[0]
        assert [url for url in self.requests if not url.startswith(origin)] == []


def wait_until(page: Any, expression: str) -> None:  # noqa: ANN401 - Playwright has its own types
    """Wait until an expression is true. Playwright's own function needs `eval`, which the page's policy forbids."""
    for _ in range(TIMEOUT_MS // 50):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


class PageOpener(Protocol):
    """Opens a page from its content, or from a URL."""

    def __call__(
        self, content: str | None = None, *, url: str = "", fragment: str = "", **options: object
    ) -> OpenPage: ...


def page_of(*runs: Lives) -> str:
    """Return the page of made-up runs, side by side."""
    data = {"runs": [_run_data(run) for run in runs], "divergence": None, "live": False, "server": None}
    return render("made up", data)


def _run_data(run: Lives) -> dict[str, Any]:
    resources = resources_of(run.nodes)
    header = {
        "name": "a run",
        "summary": "",
        "warnings": [],
        "resources": resources,
        "labels": resources,
        "mainResource": 0,
        "facts": [],
        "schedulers": {"columns": [], "rows": []},
    }
    deltas = deltas_of(*run)
    chunk = ColumnEncoder(resources).chunk(run.nodes, run.jobs, run.pods, deltas, deltas[-1].at)
    return {"header": header, "chunk": chunk}


def as_shown(state: State, resources: Sequence[str]) -> Mapping[str, Any]:
    """Return a state in the form of the page: of the resources that any node has, the amounts that are in use."""
    return {
        "nodes": {
            name: {
                "status": str(node.status),
                "pods": list(node.pods),
                "used": {name: amount for name, amount in node.used.items() if amount and name in resources},
            }
            for name, node in state.nodes.items()
        },
        "pending": list(state.pending),
        "bound": list(state.bound),
        "running": list(state.running),
        "waiting_jobs": list(state.waiting_jobs),
        "running_jobs": list(state.running_jobs),
    }
