"""The page as a widget of a notebook: what a reader does in a browser reaches the traits in Python, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.page.pages import TIMEOUT_MS, as_shown

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant
from batkube.outputs.results import Results
from batkube.page.columns import resources_of

widget = pytest.importorskip("batkube.page.widget", reason="needs `pip install 'batkube[widget]'`")

#: A notebook's side of anywidget: the module is loaded as there, and a model passes traits to and from Python.
HOST = """
async ([source, traits]) => {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { default: module } = await import(url);
  const listeners = {};
  window.model = {
    get: (name) => traits[name],
    set(name, value) { traits[name] = value; (listeners["change:" + name] ?? []).forEach((one) => one()); },
    save_changes: () => void window.save({ place: traits.place }),
    on: (event, listener) => (listeners[event] ??= []).push(listener),
    off: (event, listener) => { listeners[event] = listeners[event].filter((one) => one !== listener); },
  };
  window.listening = () => Object.values(listeners).flat().length;
  window.close = module.render({ model: window.model, el: document.body });
}
"""


class Notebook:
    """A notebook with a widget, in a browser."""

    def __init__(self, browser: Any, shown: Any) -> None:  # noqa: ANN401 - Playwright has its own types
        self.widget = shown
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(viewport={"width": 1280, "height": 950})
        self.tab = tab = self.context.new_page()
        tab.set_default_timeout(TIMEOUT_MS)
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", lambda message: self.errors.append(message.text) if message.type != "log" else None)
        tab.expose_function("save", shown.set_state)
        source = str(shown._esm)
        tab.evaluate(HOST, [source, {"document": shown.document, "height": shown.height, "place": shown.place}])
        self.page = tab.frame_locator("iframe")
        self.page.get_by_role("slider", name="Time").wait_for()

    def push(self) -> None:
        """Send the widget's place to the browser, as a kernel does."""
        self.tab.evaluate("place => window.model.set('place', place)", self.widget.place)

    def wait_until(self, condition: Any) -> None:  # noqa: ANN401 - a function without arguments
        for _ in range(TIMEOUT_MS // 50):
            if condition():
                return
            self.tab.wait_for_timeout(50)
        raise AssertionError(f"not reached: {self.widget.place}")

    def clock(self) -> str:
        return str(self.page.get_by_role("textbox", name="Instant").input_value())


@pytest.fixture
def notebook(browser: Any, failing_run: Path) -> Iterator[Notebook]:  # noqa: ANN401 - Playwright has its own types
    opened = Notebook(browser, widget.show(Results(failing_run)))
    yield opened
    opened.context.close()
    assert opened.errors == []
    assert [url for url in opened.requests if not url.startswith(("blob:", "about:"))] == []


def test_scrubbing_reaches_python_and_the_state_is_that_of_the_page(notebook: Notebook) -> None:
    seen: list[int] = []
    notebook.widget.observe(lambda change: seen.append(change["new"]), "instant")

    notebook.page.get_by_role("slider", name="Time").fill("50000")
    notebook.wait_until(lambda: seen)

    shown = notebook.widget
    assert shown.instant == seen[-1]
    assert abs(2 * shown.instant - shown.playback().end) < shown.playback().end / 1000
    (frame,) = (frame for frame in notebook.tab.frames if frame != notebook.tab.main_frame)
    (on_page,) = frame.evaluate("time => window.batkube.stateAt(time)", shown.instant // 1000)
    assert on_page == as_shown(shown.state(), resources_of(shown.playback().nodes))


def test_a_click_reaches_python_and_escape_takes_it_back(notebook: Notebook) -> None:
    notebook.page.get_by_role("textbox", name="Instant").fill("1min 40s")
    notebook.page.get_by_role("textbox", name="Instant").press("Enter")
    notebook.page.get_by_role("tab", name="Queue").click()
    subject = notebook.page.locator(".tab-panel .subject").first
    name = subject.inner_text()
    subject.click()

    notebook.wait_until(lambda: notebook.widget.selection is not None)
    assert notebook.widget.selection == widget.PageSelection("job", name)
    assert notebook.widget.instant == 100 * 10**9

    notebook.page.locator("h2").first.press("Escape")
    notebook.wait_until(lambda: notebook.widget.selection is None)


def test_what_python_sets_moves_the_page(notebook: Notebook) -> None:
    notebook.widget.instant = 125_000_000_999
    notebook.widget.selection = widget.PageSelection("node", "node-1")
    assert (notebook.widget.instant, notebook.widget.place) == (125_000_000_000, "#t=125&node=node-1")
    notebook.push()

    notebook.wait_until(lambda: notebook.clock() == "00:02:05")
    assert "node-1" in notebook.page.locator(".tab-panel").inner_text()
    notebook.widget.selection = None
    notebook.push()
    notebook.wait_until(lambda: "Click a node" in notebook.page.locator(".tab-panel").inner_text())


def test_a_frame_has_no_access_to_the_notebook_and_a_closed_one_does_not_listen(notebook: Notebook) -> None:
    (frame,) = (frame for frame in notebook.tab.frames if frame != notebook.tab.main_frame)
    assert frame.evaluate("() => { try { return parent.document.title } catch { return 'refused' } }") == "refused"

    notebook.tab.evaluate("window.model.set('height', 400)")
    assert notebook.tab.locator("iframe").bounding_box()["height"] == 400
    assert notebook.tab.evaluate("window.listening()") == 2
    notebook.tab.evaluate("window.close()")
    assert notebook.tab.evaluate("window.listening()") == 0


PLACES = st.tuples(
    st.integers(0, 10**15).map(lambda micros: Instant(micros * 1000)),
    st.none()
    | st.builds(widget.PageSelection, st.sampled_from(["node", "job", "pod"]), st.text(min_size=1), st.just(1)),
)


@given(PLACES)
def test_a_place_is_read_back_from_its_fragment(place: tuple[Instant, Any]) -> None:
    try:
        place[1] is None or place[1].name.encode()
    except UnicodeEncodeError:
        return  # no name of a run has half a character
    assert widget.place_of(widget.fragment_of(*place)) == place


def test_invalid_runs_and_selections_are_rejected(failing_run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no run to show"):
        widget.show()
    with pytest.raises(InputError):
        widget.show(tmp_path)
    shown = widget.show(failing_run, failing_run)
    with pytest.raises(widget.traitlets.TraitError, match="is not a node, job, pod of a run"):
        shown.selection = widget.PageSelection("node", "node-1", run=3)
    shown.selection = widget.PageSelection("node", "node-1", run=2)
    assert shown.place == "#t=0&node=node-1&run=2"
