"""The clock of a run on its page, in a real browser, and what the page tells about the run."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.page.pages import TIMEOUT_MS, PageOpener, wait_until

from batkube.page.live.live_page import LivePage
from batkube.scenarios.keys import make_scenario
from batkube.simulation.assembly import Simulation
from batkube.simulation.run import execute
from batkube.timing.run_clock import PausableClock

expect.set_options(timeout=TIMEOUT_MS)


class PagedRun:
    """A run with a page, in a thread of its own, which begins paused."""

    def __init__(self, folder: Path) -> None:
        self.out = folder / "out"
        self.clock = PausableClock(is_paused=True)
        self.page: LivePage | None = None
        self._has_page = threading.Event()
        self._scenario = _scenario(folder)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self._has_page.wait(60)

    def _run(self) -> None:
        self.digest = execute(self._scenario, self.out, on_assembled=self._show, run_clock=self.clock).digest

    def _show(self, simulation: Simulation) -> None:
        self.page = LivePage(simulation.world, "a run", "in progress", clock=self.clock)
        self.page.__enter__()
        self._has_page.set()

    @property
    def url(self) -> str:
        assert self.page is not None
        return self.page.url

    def undisturbed_digest(self) -> str:
        return execute(self._scenario, self.out.with_name("again")).digest

    def close(self) -> None:
        self.clock.set_speed(None)
        self.clock.resume()
        self.thread.join(60)
        if self.page is not None:
            self.page.__exit__(None, None, None)


def _scenario(folder: Path) -> Any:  # noqa: ANN401 - only passed on
    jobs = [
        {"id": str(number), "subtime": number * 20, "res": 2, "profile": "d", "walltime": 100} for number in range(20)
    ]
    profiles = {"d": {"type": "delay", "delay": 50}}
    (folder / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    keys = {"workload": [str(folder / "w.json")], "platform": "4x1", "scheduler": "policy:easy"}
    return make_scenario(keys, "test")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[PagedRun]:
    one = PagedRun(tmp_path)
    yield one
    one.close()


def end_s(page: Page) -> float:
    return float(page.evaluate("window.batkube.end()")) / 1e6


def test_every_control_of_the_clock_works_and_changes_no_result(open_page: PageOpener, run: PagedRun) -> None:
    page = open_page(url=run.url).browser_page
    bar = page.get_by_role("toolbar", name="Clock of the cluster")
    state, speed = bar.get_by_role("status"), bar.get_by_role("combobox")

    expect(state).to_have_text("paused")
    assert end_s(page) == 0
    bar.get_by_role("button", name="Run to the next decision (N)").click()
    # Everything at 0 s has happened: the first job is bound. The next one is submitted at 20 s.
    wait_until(page, "window.batkube.end() === 20e6")
    expect(state).to_have_text("paused")
    page.keyboard.press("n")
    # The third job has to wait for the first one, until 50 s.
    wait_until(page, "window.batkube.end() === 50e6")
    bar.get_by_role("textbox", name="Run until").fill("1min 3.5s")
    page.keyboard.press("Enter")
    wait_until(page, "window.batkube.end() === 63.5e6")
    expect(state).to_have_text("paused")
    speed.select_option("10 s per second")
    bar.get_by_role("button", name="Resume the cluster (P)").click()
    expect(state).to_have_text("running")
    # Time passes between events, too.
    wait_until(page, "window.batkube.end() > 64.5e6 && window.batkube.end() < 80e6")
    bar.get_by_role("button", name="Pause the cluster (P)").click()
    expect(state).to_have_text("paused")
    speed.select_option("as fast as possible")
    page.locator("h1").click()
    page.keyboard.press("p")
    run.thread.join(60)
    assert run.page is not None
    run.page.finish(run.out)
    expect(bar).to_be_hidden()
    assert run.digest == run.undisturbed_digest()


def test_the_page_explains_the_run_once_it_is_over(open_page: PageOpener, run: PagedRun) -> None:
    page = open_page(url=run.url).browser_page
    panel = page.get_by_role("tabpanel")
    run.clock.run_until(70_000_000_000)  # type: ignore[arg-type]
    wait_until(page, "window.batkube.end() === 70e6")
    page.get_by_role("combobox", name="Find").fill("w0!3")
    page.keyboard.press("Enter")
    panel.get_by_text("Why?").click()
    expect(panel.locator("pre.refused")).to_contain_text("complete once the run is over")
    panel.get_by_text("YAML", exact=True).click()
    expect(panel.locator("pre").last).to_contain_text("id: w0!3")
    page.get_by_role("combobox", name="Find").fill("w0-2-0")
    page.keyboard.press("Enter")
    panel.get_by_text("YAML", exact=True).click()
    expect(panel.locator("pre").last).to_contain_text("# From the run's store.")
    expect(panel.locator("pre").last).to_contain_text("nodeName: node-")
    run.clock.resume()
    run.thread.join(60)
    assert run.page is not None
    run.page.finish(run.out)
    page.get_by_role("combobox", name="Find").fill("w0!3")
    page.keyboard.press("Enter")
    panel.get_by_text("Why?").click()
    expect(panel.locator("pre").first).to_contain_text("w0!3")
    expect(panel.locator("pre").first).to_contain_text("it needed 2 machines")
